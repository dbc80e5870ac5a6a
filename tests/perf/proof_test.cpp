// SPDX-License-Identifier: Apache-2.0
// The proof by doing, on simulated NICs.
#include "tools/perf/nic_proof.hpp"

#include <gtest/gtest.h>

#include "tests/fabric/network.hpp"
#include "tools/perf/nic_buffer.hpp"

namespace gdrx::perf {
namespace {

class ProofOnSimulatedNics : public ::testing::Test {
 protected:
  sim::Network network_{sim::Network::Mode::live};
};

TEST_F(ProofOnSimulatedNics, EachPortProvesHostMemory) {
  const auto table = network_.add_host({.nics = 2});
  const auto proofs = prove(table, {});
  ASSERT_EQ(proofs.size(), 2u);
  for (const doctor::Proof& one : proofs) {
    EXPECT_EQ(one.problem, "") << one.nic;
    EXPECT_EQ(one.way, "host memory");
  }
  EXPECT_GE(network_.bytes_moved(), 2 * 2 * kProofBytes);  // there and back, on each
  EXPECT_EQ(network_.live_objects(), 0u);
}

TEST_F(ProofOnSimulatedNics, InfiniBandNeedsNoGid) {
  const auto proofs = prove(network_.add_host({.nics = 1, .infiniband = true}), {});
  ASSERT_EQ(proofs.size(), 1u);
  EXPECT_EQ(proofs[0].problem, "");
}

TEST_F(ProofOnSimulatedNics, APortThatIsDownIsNotTried) {
  const auto table = network_.add_host({.nics = 2});
  network_.set_port(0, 1, false);
  const auto proofs = prove(table, {});
  ASSERT_EQ(proofs.size(), 1u);
  EXPECT_EQ(proofs[0].nic, "sim0");
}

TEST_F(ProofOnSimulatedNics, AQueuePairThatCannotBeMadeIsAProblemWithItsCall) {
  const auto table = network_.add_host();
  network_.set_fault(sim::Fault::create_qp_fails, 1);
  const auto proofs = prove(table, {});
  ASSERT_EQ(proofs.size(), 1u);
  EXPECT_NE(proofs[0].problem.find("ibv_create_qp on sim0"), std::string::npos)
      << proofs[0].problem;
  EXPECT_NE(proofs[0].native, 0);
}

TEST_F(ProofOnSimulatedNics, RefusedMemoryIsAProblemWithItsErrno) {
  auto table = std::make_shared<verbs::VerbsTable>(*network_.add_host());
  table->reg_mr = [](ibv_pd*, void*, std::size_t, int) -> ibv_mr* {
    errno = ENOMEM;
    return nullptr;
  };
  const auto proofs = prove(table, {});
  ASSERT_EQ(proofs.size(), 1u);
  EXPECT_EQ(proofs[0].native, ENOMEM);
}

// A NIC, or a PCIe path, that changes what it carries.
TEST_F(ProofOnSimulatedNics, ChangedBytesAreFound) {
  auto table = std::make_shared<verbs::VerbsTable>(*network_.add_host());
  const auto create_cq = table->create_cq;
  static std::vector<std::span<std::byte>> registered;
  registered.clear();
  const auto reg_mr = table->reg_mr;
  table->reg_mr = [reg_mr](ibv_pd* pd, void* at, std::size_t bytes, int access) {
    registered.push_back({static_cast<std::byte*>(at), bytes});
    return reg_mr(pd, at, bytes, access);
  };
  static int (*poll)(ibv_cq*, int, ibv_wc*) = nullptr;
  table->create_cq = [create_cq](ibv_context* context, int entries) {
    if (poll == nullptr) poll = context->ops.poll_cq;
    context->ops.poll_cq = [](ibv_cq* queue, int count, ibv_wc* into) {
      const int done = poll(queue, count, into);
      if (done > 0) registered.back()[77] ^= std::byte{1};
      return done;
    };
    return create_cq(context, entries);
  };
  const auto proofs = prove(table, {});
  ASSERT_EQ(proofs.size(), 1u);
  EXPECT_NE(proofs[0].problem.find("the bytes written differ from 77 on"), std::string::npos)
      << proofs[0].problem;
}

TEST(ProofHere, EndsWithAnAnswerOnAnyMachine) {
  const auto proofs = prove_here();
  EXPECT_TRUE(proofs || !proofs.error().what.empty());
}

TEST(Pattern, DiffersFromSeedToSeedAndFromPageToPage) {
  const auto one = pattern(8192, 1);
  EXPECT_NE(one, pattern(8192, 2));
  EXPECT_NE(std::vector(one.begin(), one.begin() + 4096),
            std::vector(one.begin() + 4096, one.end()));
}

}  // namespace
}  // namespace gdrx::perf
