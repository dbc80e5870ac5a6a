// SPDX-License-Identifier: Apache-2.0
// allReduceLeaves: whoever holds the leaves, they are reduced along one tree.
#include <gtest/gtest.h>

#include <random>

#include "gdrx/plan.hpp"
#include "gdrx/plan_text.hpp"

namespace gdrx::plan {
namespace {

void expect_proven(std::vector<std::int32_t> leaves) {
  const auto ranks = static_cast<std::int32_t>(leaves.size());
  for (const Algorithm algorithm : algorithms_of(Collective::all_reduce_leaves)) {
    const auto plan = build({Collective::all_reduce_leaves, algorithm, ranks, Rank{}, leaves});
    ASSERT_TRUE(plan) << plan.error().what;
    const auto proof = verify(*plan);
    EXPECT_TRUE(proof) << to_string(algorithm) << ", leaves " << testing::PrintToString(leaves)
                       << ": " << proof.error().what;
  }
}

TEST(Leaves, OfEqualRunsAreProven) {
  for (const int ranks : {1, 2, 3, 4, 6, 8, 12, 16, 24, 48}) {
    expect_proven(std::vector<std::int32_t>(static_cast<std::size_t>(ranks), 48 / ranks));
  }
}

TEST(Leaves, OfAnyRunsAreProven) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int32_t> leaves(1 + random() % 9);
    for (std::int32_t& count : leaves) count = static_cast<std::int32_t>(random() % 12);
    leaves[random() % leaves.size()] += 1;
    expect_proven(leaves);
  }
}

TEST(Leaves, OfOneRankAloneAndOfNobodyElseAreProven) {
  for (const std::int32_t count : {1, 2, 3, 7}) {
    expect_proven({count});
    expect_proven({count, 0, 0});
    expect_proven({0, 0, count});
  }
}

TEST(Leaves, ThatCannotBeAreRefusedWithTheReason) {
  const auto refused = [](std::vector<std::int32_t> leaves) {
    const auto plan =
        build({Collective::all_reduce_leaves, Algorithm::one_shot, 2, Rank{}, std::move(leaves)});
    return plan ? std::string("taken") : std::string(plan.error().what);
  };
  EXPECT_EQ(refused({0, 0}), "0 leaves: there are 1 at least and 65536 at most");
  EXPECT_EQ(refused({65536, 1}), "65537 leaves: there are 1 at least and 65536 at most");
  EXPECT_EQ(refused({3, -1}), "-1 leaves of a rank");
  EXPECT_EQ(refused({1, 2, 3}), "3 numbers of leaves for 2 ranks");
  EXPECT_TRUE(shape_of({Collective::all_reduce_leaves, Algorithm::two_shot, 16, Rank{},
                        std::vector<std::int32_t>(16, 4096)}));
  std::vector<std::int32_t> skewed(32, 0);
  skewed[3] = 40'000;
  const auto wide =
      shape_of({Collective::all_reduce_leaves, Algorithm::two_shot, 32, Rank{}, skewed});
  ASSERT_FALSE(wide);
  EXPECT_EQ(wide.error().what, "40000 leaves of one of 32 ranks: 32768 at most, divide them");
  const auto other = build({Collective::all_reduce, Algorithm::ring, 2, Rank{}, {1, 1}});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().what, "allReduce has no leaves");
}

// One that reduces its own leaves before the others' is another tree.
TEST(Leaves, AlongAnotherTreeAreRefused) {
  auto plan = build({Collective::all_reduce_leaves, Algorithm::one_shot, 2, Rank{}, {3, 1}});
  ASSERT_TRUE(plan);
  plan->spec.leaves = {2, 2};
  EXPECT_FALSE(verify(*plan));
}

TEST(Leaves, AreReadAsTheyAreWritten) {
  const std::vector<std::vector<std::int32_t>> lists{
      {5, 0, 2}, {48}, {24, 24}, {30, 1, 1}, {12, 12, 12, 12}, std::vector<std::int32_t>(16, 7)};
  for (const auto& leaves : lists) {
    for (const Algorithm algorithm : algorithms_of(Collective::all_reduce_leaves)) {
      const auto plan = build({Collective::all_reduce_leaves, algorithm,
                               static_cast<std::int32_t>(leaves.size()), Rank{}, leaves});
      ASSERT_TRUE(plan);
      const auto read = from_json(to_json(*plan));
      ASSERT_TRUE(read) << read.error().what;
      EXPECT_EQ(read->spec, plan->spec);
      EXPECT_EQ(read->ranks, plan->ranks);
    }
  }
}

TEST(Leaves, OfAFileTakeNoMoreMemoryThanThereIs) {
  std::string leaves = "1024";
  for (int rank = 1; rank < 1024; ++rank) leaves += ", 0";
  const auto refused = [&](const std::string& chunks) {
    const auto read = from_json(
        R"({"gdrx_plan": 1, "collective": "allReduceLeaves", "algorithm": "two-shot",
            "ranks": 1024, "root": 0, "leaves": [)" +
        leaves + R"(], "input_chunks": )" + chunks +
        R"(, "output_chunks": 1024, "channels": 1, "credits": 1, "programs": []})");
    return read ? std::string() : std::string(read.error().what);
  };
  EXPECT_NE(refused("1048576").find("more than 4194304 chunks"), std::string::npos)
      << refused("1048576");
}

// Two operations into one chunk are rounded once.
TEST(Leaves, WhoseSumsAreRoundedTogetherAreRefused) {
  auto plan = build({Collective::all_reduce_leaves, Algorithm::one_shot, 1, Rank{}, {3}});
  ASSERT_TRUE(plan);
  const auto in = [](std::uint32_t chunk) { return ChunkRef{Buffer::input, chunk}; };
  const ChunkRef out{Buffer::output, 0};
  plan->ranks[0].channels[0] = {{OpKind::copy, false, {}, in(0), out},
                                {OpKind::reduce, false, {}, in(1), out},
                                {OpKind::reduce, true, {}, in(2), out}};
  const auto proof = verify(*plan);
  ASSERT_FALSE(proof);
  EXPECT_NE(std::string(proof.error().what).find("is not rounded by itself"), std::string::npos)
      << proof.error().what;
}

}  // namespace
}  // namespace gdrx::plan
