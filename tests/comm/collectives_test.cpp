// SPDX-License-Identifier: Apache-2.0
// Every collective, algorithm and transport against sums made by hand.
#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "gdrx/plan.hpp"
#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

constexpr std::array<std::size_t, 7> kCounts{0, 1, 7, 64, 1009, 65'537, 300'007};

std::vector<float> input_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(rank, i);
  return values;
}

std::vector<float> sum_of(int ranks, std::size_t count) {
  std::vector<float> total(count, 0.0F);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < count; ++i) total[i] += value_of(rank, i);
  }
  return total;
}

struct Way {
  const char* algorithm;
  const char* transport;
};

class AllReduce : public testing::TestWithParam<std::tuple<int, Way>> {};

TEST_P(AllReduce, GivesEveryRankTheSumOutOfPlaceAndInPlace) {
  const auto [ranks, way] = GetParam();
  const World world(ranks, with(way.algorithm, way.transport));
  for (const std::size_t count : kCounts) {
    const std::vector<float> expected = sum_of(ranks, count);
    world.run([&](int rank, gdrxComm_t comm) {
      const std::vector<float> in = input_of(rank, count);
      std::vector<float> out(count, -1.0F);
      EXPECT_EQ(
          gdrxAllReduce(in.data(), out.data(), count, gdrxFloat32, gdrxSum, comm, nullptr, nullptr),
          gdrxSuccess)
          << gdrxGetLastError(comm);
      EXPECT_EQ(out, expected) << "count " << count;
      EXPECT_EQ(in, input_of(rank, count)) << "the input was changed";
      out = in;
      EXPECT_EQ(gdrxAllReduce(out.data(), out.data(), count, gdrxFloat32, gdrxSum, comm, nullptr,
                              nullptr),
                gdrxSuccess);
      EXPECT_EQ(out, expected) << "in place, count " << count;
    });
  }
}

TEST_P(AllReduce, SendsAsManyMessagesAsItsPlanSays) {
  const auto [ranks, way] = GetParam();
  const World world(ranks, with(way.algorithm, way.transport));
  world.run([&](int rank, gdrxComm_t comm) {
    const std::vector<float> in = input_of(rank, 200'003);
    std::vector<float> out(in.size());
    ASSERT_EQ(gdrxAllReduce(in.data(), out.data(), in.size(), gdrxFloat32, gdrxSum, comm, nullptr,
                            nullptr),
              gdrxSuccess);
    gdrxOpInfo_t info{};
    info.size = sizeof info;
    ASSERT_EQ(gdrxCommGetLastOp(comm, &info), gdrxSuccess);
    EXPECT_EQ(info.messages_sent, info.plan_sends * info.slices) << info.algorithm;
    EXPECT_EQ(info.messages_received, info.plan_receives * info.slices) << info.algorithm;
    EXPECT_TRUE(ranks == 1 || info.messages_sent > 0);
  });
}

TEST(HalvingDoubling, SendsAMessageAStepUntilTheVectorIsCut) {
  const World world(8, with("halving-doubling", "ucx"));
  for (const auto& [count, uncut] : {std::pair<std::size_t, bool>{1009, true}, {300'007, false}}) {
    const std::vector<float> expected = sum_of(8, count);
    world.run([&, count = count, uncut = uncut](int rank, gdrxComm_t comm) {
      const std::vector<float> in = input_of(rank, count);
      std::vector<float> out(count);
      ASSERT_EQ(
          gdrxAllReduce(in.data(), out.data(), count, gdrxFloat32, gdrxSum, comm, nullptr, nullptr),
          gdrxSuccess);
      EXPECT_EQ(out, expected);
      gdrxOpInfo_t info{};
      info.size = sizeof info;
      ASSERT_EQ(gdrxCommGetLastOp(comm, &info), gdrxSuccess);
      EXPECT_EQ(info.messages_sent, uncut ? 6 : 14 * info.slices);  // 2 log2(8), 2 (8 - 1)
      EXPECT_EQ(info.messages_sent, info.plan_sends * info.slices);
    });
  }
}

// The tuner's choice, and every algorithm over every transport.
std::vector<Way> ways() {
  std::vector<Way> all{{"auto", nullptr}};
  for (const std::string_view algorithm : plan::kAlgorithmNames) {
    for (const char* transport : {"shm", "ucx"}) all.push_back({algorithm.data(), transport});
  }
  return all;
}

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Ways, AllReduce, testing::Combine(testing::Values(1, 2, 3, 5, 8), testing::ValuesIn(ways())),
    [](const auto& info) {
      const Way way = std::get<1>(info.param);
      return underscored(std::to_string(std::get<0>(info.param)) + "_" + way.algorithm + "_" +
                         (way.transport == nullptr ? "shm" : way.transport));
    });

// With each algorithm, where the collective has it, and else with the tuner's choice.
class Others : public testing::TestWithParam<std::tuple<int, const char*>> {};

TEST_P(Others, ReduceScatterGivesEachRankItsBlock) {
  const auto [ranks, algorithm] = GetParam();
  const World world(ranks, with(algorithm));
  for (const std::size_t count : kCounts) {
    const std::size_t whole = count * static_cast<std::size_t>(ranks);
    const std::vector<float> total = sum_of(ranks, whole);
    world.run([&](int rank, gdrxComm_t comm) {
      std::vector<float> in = input_of(rank, whole);
      std::vector<float> out(count);
      ASSERT_EQ(gdrxReduceScatter(in.data(), out.data(), count, gdrxFloat32, gdrxSum, comm, nullptr,
                                  nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      const auto begin = total.begin() + static_cast<std::ptrdiff_t>(count) * rank;
      EXPECT_TRUE(std::equal(out.begin(), out.end(), begin)) << "count " << count;
      float* own = in.data() + count * static_cast<std::size_t>(rank);
      ASSERT_EQ(
          gdrxReduceScatter(in.data(), own, count, gdrxFloat32, gdrxSum, comm, nullptr, nullptr),
          gdrxSuccess);
      EXPECT_TRUE(std::equal(own, own + count, begin)) << "in place, count " << count;
    });
  }
}

TEST_P(Others, AllGatherGivesEveryRankAllBlocks) {
  const auto [ranks, algorithm] = GetParam();
  const World world(ranks, with(algorithm));
  for (const std::size_t count : kCounts) {
    std::vector<float> expected;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<float> block = input_of(rank, count);
      expected.insert(expected.end(), block.begin(), block.end());
    }
    world.run([&](int rank, gdrxComm_t comm) {
      const std::vector<float> in = input_of(rank, count);
      std::vector<float> out(expected.size(), -1.0F);
      ASSERT_EQ(gdrxAllGather(in.data(), out.data(), count, gdrxFloat32, comm, nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      EXPECT_EQ(out, expected);
      std::vector<float> same(expected.size(), -1.0F);
      float* own = same.data() + count * static_cast<std::size_t>(rank);
      std::copy(in.begin(), in.end(), own);
      ASSERT_EQ(gdrxAllGather(own, same.data(), count, gdrxFloat32, comm, nullptr, nullptr),
                gdrxSuccess);
      EXPECT_EQ(same, expected) << "in place";
    });
  }
}

TEST_P(Others, BroadcastGivesTheRootsDataFromEachRoot) {
  const auto [ranks, algorithm] = GetParam();
  const World world(ranks, with(algorithm));
  for (int root = 0; root < ranks; ++root) {
    for (const std::size_t count : kCounts) {
      const std::vector<float> expected = input_of(root, count);
      world.run([&](int rank, gdrxComm_t comm) {
        std::vector<float> out(count, -1.0F);
        const float* in = rank == root ? expected.data() : nullptr;
        ASSERT_EQ(gdrxBroadcast(in, out.data(), count, gdrxFloat32, root, comm, nullptr, nullptr),
                  gdrxSuccess)
            << gdrxGetLastError(comm);
        EXPECT_EQ(out, expected);
      });
    }
  }
}

TEST_P(Others, ReduceGivesTheRootTheSumAndNeedsNoOutputElsewhere) {
  const auto [ranks, algorithm] = GetParam();
  const World world(ranks, with(algorithm));
  for (int root = 0; root < ranks; ++root) {
    for (const std::size_t count : kCounts) {
      const std::vector<float> expected = sum_of(ranks, count);
      world.run([&](int rank, gdrxComm_t comm) {
        const std::vector<float> in = input_of(rank, count);
        std::vector<float> out(rank == root ? count : 0, -1.0F);
        float* target = rank == root ? out.data() : nullptr;
        ASSERT_EQ(gdrxReduce(in.data(), target, count, gdrxFloat32, gdrxSum, root, comm, nullptr,
                             nullptr),
                  gdrxSuccess)
            << gdrxGetLastError(comm);
        EXPECT_TRUE(rank != root || out == expected);
        EXPECT_EQ(in, input_of(rank, count)) << "the input was changed";
      });
    }
  }
}

TEST_P(Others, NobodyLeavesABarrierBeforeAllHaveCome) {
  const auto [ranks, algorithm] = GetParam();
  const World world(ranks, with(algorithm));
  std::atomic<int> came{0};
  for (int round = 1; round <= 20; ++round) {
    world.run([&](int, gdrxComm_t comm) {
      came.fetch_add(1);
      ASSERT_EQ(gdrxBarrier(comm, nullptr, nullptr), gdrxSuccess);
      EXPECT_GE(came.load(), round * ranks);
    });
  }
}

TEST_P(Others, GroupedExchangesOfUnequalSizesDoNotDeadlock) {
  const auto [ranks, algorithm] = GetParam();
  const World world(ranks, with(algorithm));
  world.run([&](int rank, gdrxComm_t comm) {
    const int next = (rank + 1) % ranks;
    const int previous = (rank + ranks - 1) % ranks;
    const auto size_from = [](int source) {
      return source % 2 == 0 ? std::size_t{1'000'003} : std::size_t{5};
    };
    const std::vector<float> out = input_of(rank, size_from(rank));
    std::vector<float> in(size_from(previous), -1.0F);
    for (int round = 0; round < 3; ++round) {
      ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
      ASSERT_EQ(gdrxRecv(in.data(), in.size(), gdrxFloat32, previous, comm, nullptr, nullptr),
                gdrxSuccess);
      ASSERT_EQ(gdrxSend(out.data(), out.size(), gdrxFloat32, next, comm, nullptr, nullptr),
                gdrxSuccess);
      ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(comm);
      EXPECT_EQ(in, input_of(previous, in.size()));
    }
  });
}

std::vector<const char*> algorithms() {
  std::vector<const char*> all{"auto"};
  for (const std::string_view name : plan::kAlgorithmNames) all.push_back(name.data());
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ranks, Others,
                         testing::Combine(testing::Values(1, 2, 3, 4, 7),
                                          testing::ValuesIn(algorithms())),
                         [](const auto& info) {
                           return underscored(std::to_string(std::get<0>(info.param)) + "_" +
                                              std::get<1>(info.param));
                         });

TEST(AllReduceBits, AreTheSameOnEveryRankAndOverBothTransportsForHalf) {
  constexpr int kRanks = 5;
  constexpr std::size_t kCount = 10'007;
  std::vector<std::vector<std::uint16_t>> results;
  for (const char* transport : {"auto", "ucx"}) {
    for (const char* algorithm : {"one-shot", "two-shot"}) {
      const World world(kRanks, with(algorithm, transport));
      std::vector<std::vector<std::uint16_t>> outs(kRanks, std::vector<std::uint16_t>(kCount));
      world.run([&](int rank, gdrxComm_t comm) {
        std::vector<std::uint16_t> in(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {  // finite halves of many magnitudes
          const std::size_t hash = (i * 2654435761u + static_cast<std::size_t>(rank) * 40503u);
          in[i] = static_cast<std::uint16_t>((hash >> 7) % 0x7000u) |
                  static_cast<std::uint16_t>((hash & 1) << 15);
        }
        ASSERT_EQ(gdrxAllReduce(in.data(), outs[static_cast<std::size_t>(rank)].data(), kCount,
                                gdrxFloat16, gdrxSum, comm, nullptr, nullptr),
                  gdrxSuccess)
            << gdrxGetLastError(comm);
      });
      results.insert(results.end(), outs.begin(), outs.end());
    }
  }
  for (const auto& result : results) EXPECT_EQ(result, results.front());
}

}  // namespace
}  // namespace gdrx::test
