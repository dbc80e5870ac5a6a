// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "gdrx/plan.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::plan {
namespace {

TEST(Plans, OfEveryCollectiveAndAlgorithmAreProvenFor1To33Ranks) {
  int proven = 0;
  for (const Collective collective : collectives_with_plans()) {
    for (const Algorithm algorithm : algorithms_of(collective)) {
      for (std::int32_t n = 1; n <= 33; ++n) {
        for (const std::int32_t root : {0, n / 2, n - 1}) {
          const auto plan = build({collective, algorithm, n, Rank{root}});
          ASSERT_TRUE(plan) << plan.error().what;
          const auto proof = verify(*plan);
          ASSERT_TRUE(proof) << to_string(collective) << " " << to_string(algorithm) << " n=" << n
                             << ": " << proof.error().what;
          ++proven;
        }
      }
    }
  }
  RecordProperty("proven", proven);
  EXPECT_GT(proven, 1400);
}

TEST(Plans, Of1024RanksAreProvenInSeconds) {
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling}) {
    const auto begin = std::chrono::steady_clock::now();
    const auto plan = build({Collective::all_reduce, algorithm, 1024, Rank{}});
    ASSERT_TRUE(plan);
    const auto proof = verify(*plan);
    EXPECT_TRUE(proof) << proof.error().what;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60))
        << to_string(algorithm);
  }
}

TEST(Plans, OneRankOf100000IsBuiltAlone) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree}) {
    const auto begin = std::chrono::steady_clock::now();
    const auto program =
        build_rank({Collective::all_reduce, algorithm, 100'000, Rank{}}, Rank{777});
    ASSERT_TRUE(program);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(500));
    EXPECT_GT(traffic_of(*program).sends, 0u);
  }
}

TEST(Plans, RingSendsTwoChunksLessTwoARank) {
  const auto plan = build({Collective::all_reduce, Algorithm::ring, 8, Rank{}});
  ASSERT_TRUE(plan);
  for (const RankProgram& program : plan->ranks) EXPECT_EQ(traffic_of(program).sends, 14u);
}

TEST(Plans, OfHalvingAndDoublingSendAMessageAStep) {
  const auto plan = build({Collective::all_reduce, Algorithm::halving_doubling, 16, Rank{}});
  ASSERT_TRUE(plan);
  for (const RankProgram& program : plan->ranks) {
    EXPECT_EQ(traffic_of(program).sends, 8u);
    EXPECT_EQ(traffic_of(split_ranges(program)).sends, 30u);
  }
}

TEST(Plans, AreProvenWithAMessageAChunkToo) {
  for (const Collective collective : collectives_with_plans()) {
    for (const Algorithm algorithm : algorithms_of(collective)) {
      for (std::int32_t n = 1; n <= 33; ++n) {
        auto plan = build({collective, algorithm, n, Rank{}});
        ASSERT_TRUE(plan);
        for (RankProgram& program : plan->ranks) program = split_ranges(program);
        const auto proof = verify(*plan);
        ASSERT_TRUE(proof) << to_string(collective) << " " << to_string(algorithm) << " n=" << n
                           << ": " << proof.error().what;
      }
    }
  }
}

TEST(Plans, WithoutRangesAreSplitIntoThemselves) {
  const auto program = build_rank({Collective::all_reduce, Algorithm::ring, 5, Rank{}}, Rank{3});
  ASSERT_TRUE(program);
  EXPECT_EQ(split_ranges(*program), *program);
}

TEST(Verifier, RefusesRangesThatAreNoRunOfMemory) {
  auto plan = build({Collective::all_reduce, Algorithm::ring, 4, Rank{}});
  ASSERT_TRUE(plan);
  const ChunkRef low{Buffer::output, 0, 0, 2};
  const ChunkRef high{Buffer::output, 1, 0, 2};
  auto refusal = [&](const Op& op) {
    Plan wrong = *plan;
    wrong.ranks[0].channels[0].push_back(op);
    const auto proof = verify(wrong);
    return proof ? Text("none") : proof.error().what;
  };
  EXPECT_NE(refusal({OpKind::copy, false, {}, low, high}).find("over itself"), std::string::npos);
  EXPECT_NE(refusal({OpKind::copy, false, {}, low, {Buffer::output, 2, 0, 1}}).find("lengths"),
            std::string::npos);
  EXPECT_NE(refusal({OpKind::wait, false, {}, {Buffer::output, 0, 0, 0}, {}}).find("beside"),
            std::string::npos);
  EXPECT_NE(
      refusal({OpKind::wait, false, {}, {Buffer::output, 3, 0, UINT32_MAX}, {}}).find("exist"),
      std::string::npos);
}

TEST(Plans, RefuseWhatDoesNotExist) {
  EXPECT_FALSE(build({Collective::all_gather, Algorithm::tree, 4, Rank{}}));
  EXPECT_FALSE(build({Collective::all_reduce, Algorithm::ring, 0, Rank{}}));
  EXPECT_FALSE(build({Collective::broadcast, Algorithm::tree, 4, Rank{4}}));
  EXPECT_FALSE(build_rank({Collective::all_reduce, Algorithm::ring, 4, Rank{}}, Rank{-1}));
}

// own (op) before in place of before (op) own: the same for a sum, not for a user's operator.
TEST(Verifier, SeesOperandsOnTheWrongSide) {
  auto plan = build({Collective::scan, Algorithm::one_shot, 3, Rank{}});
  ASSERT_TRUE(plan);
  Channel& ops = plan->ranks[1].channels[0];
  const auto at = [&](OpKind kind) {
    return std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.kind == kind; });
  };
  const auto received = at(OpKind::recv_copy);
  const auto added = at(OpKind::reduce);
  ASSERT_NE(received, ops.end());
  ASSERT_NE(added, ops.end());
  received->kind = OpKind::recv_reduce;
  received->src = added->src;
  ops.erase(added);
  const auto proof = verify(*plan);
  ASSERT_FALSE(proof);
  EXPECT_NE(proof.error().what.find("does not hold what it should"), std::string::npos)
      << proof.error().what;
}

TEST(Verifier, SeesADeadlock) {
  auto plan = build({Collective::all_reduce, Algorithm::ring, 3, Rank{}});
  ASSERT_TRUE(plan);
  for (RankProgram& program : plan->ranks) {  // everybody receives first
    std::swap(program.channels[0][0], program.channels[0][1]);
  }
  const auto proof = verify(*plan);
  ASSERT_FALSE(proof);
  EXPECT_NE(proof.error().what.find("waits for ever"), std::string::npos) << proof.error().what;
}

}  // namespace
}  // namespace gdrx::plan
