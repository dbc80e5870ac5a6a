// SPDX-License-Identifier: Apache-2.0
// GDRX_REPRODUCIBLE=1: the same bits whatever the size, the algorithm and the transport.
#include <cstdlib>
#include <cstring>
#include <random>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

constexpr int kRanks = 5;
constexpr std::size_t kCount = 300'007;

// Sums of these depend on the order of additions.
std::vector<std::vector<float>> random_inputs() {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> numbers(-1, 1);
  std::vector<std::vector<float>> inputs(kRanks, std::vector<float>(kCount));
  for (auto& input : inputs) {
    for (float& value : input) value = numbers(random);
  }
  return inputs;
}

/// Rank 0's result of the whole vector, in calls of `piece` elements.
std::vector<float> reduce(const World& world, const std::vector<std::vector<float>>& inputs,
                          std::size_t piece) {
  std::vector<float> result(kCount);
  world.run([&](int rank, gdrxComm_t comm) {
    const auto& input = inputs[static_cast<std::size_t>(rank)];
    std::vector<float> own(kCount);
    for (std::size_t at = 0; at < kCount; at += piece) {
      EXPECT_EQ(gdrxAllReduce(input.data() + at, own.data() + at, std::min(piece, kCount - at),
                              gdrxFloat32, gdrxSum, comm, nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
    }
    if (rank == 0) result = own;
  });
  return result;
}

class Reproducible : public testing::Test {
 protected:
  void SetUp() override { setenv("GDRX_REPRODUCIBLE", "1", 1); }
  void TearDown() override { unsetenv("GDRX_REPRODUCIBLE"); }
};

TEST_F(Reproducible, SizeAndAlgorithmAndTransportDoNotChangeABit) {
  const auto inputs = random_inputs();
  const std::vector<float> expected = reduce(World(kRanks), inputs, kCount);
  const auto same = [&](const gdrxConfig_t& config, std::size_t piece) {
    const std::vector<float> got = reduce(World(kRanks, config), inputs, piece);
    return std::memcmp(got.data(), expected.data(), kCount * sizeof(float)) == 0;
  };
  EXPECT_TRUE(same(with(nullptr), 2'048)) << "in pieces";
  EXPECT_TRUE(same(with(nullptr), kCount)) << "again";
  EXPECT_TRUE(same(with("one-shot"), kCount));
  EXPECT_TRUE(same(with("two-shot"), kCount));
  EXPECT_TRUE(same(with(nullptr, "ucx"), kCount)) << "over the fabric";
  EXPECT_TRUE(same(with("one-shot", "ucx"), 50'000)) << "over the fabric";
}

TEST(NotReproducible, UntilTheConfigAsksForIt) {
  const auto inputs = random_inputs();
  gdrxConfig_t config = with(nullptr, "ucx");
  config.reproducible = 1;
  const std::vector<float> expected = reduce(World(kRanks, with("two-shot")), inputs, kCount);
  EXPECT_EQ(reduce(World(kRanks, config), inputs, kCount), expected);
  EXPECT_EQ(reduce(World(kRanks, config), inputs, 2'048), expected);
  config.reproducible = 2;
  gdrxComm_t comm = nullptr;
  EXPECT_EQ(gdrxCommInitAll(&comm, 1, &config), gdrxInvalidArgument);
  EXPECT_NE(std::string(gdrxGetLastError(nullptr)).find("'2'"), std::string::npos);
}

TEST_F(Reproducible, AnAlgorithmThatAddsInAnotherOrderIsRefused) {
  std::vector<gdrxComm_t> comms(2);
  const gdrxConfig_t config = with("ring");
  EXPECT_EQ(gdrxCommInitAll(comms.data(), 2, &config), gdrxInvalidArgument);
  EXPECT_NE(std::string(gdrxGetLastError(nullptr)).find("two-shot"), std::string::npos);
}

// Else the first test would prove nothing.
TEST(NotReproducible, TheRingGivesOtherBits) {
  const auto inputs = random_inputs();
  const std::vector<float> ring = reduce(World(kRanks, with("ring", "ucx")), inputs, kCount);
  const std::vector<float> direct = reduce(World(kRanks, with("two-shot")), inputs, kCount);
  EXPECT_NE(ring, direct);
}

}  // namespace
}  // namespace gdrx::test
