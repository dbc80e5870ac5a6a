// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/choose.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "collectives/gpu/early_starts.hpp"
#include "collectives/kernels/moved_messages.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::uint64_t kSizes[] = {1,
                                    8,
                                    16,
                                    17,
                                    4096,
                                    65536,
                                    262144,
                                    1 << 20,
                                    3 << 20,
                                    4 << 20,
                                    (4 << 20) + 1,
                                    16 << 20,
                                    64 << 20,
                                    1ULL << 31,
                                    (1ULL << 31) + 12345};

// However long the queues of ranks that share a GPU, no rank's kernels fill it: 128 grids run.
TEST(EarlyStarts, OfAllRanksOfAGpuLeaveRoom) {
  Shape tiny;
  tiny.threads = 512;
  Shape large = tiny;
  large.blocks = 2;
  for (int sharing = 1; sharing <= kMaxRanks; ++sharing) {
    EarlyStarts starts(sharing);
    EXPECT_FALSE(starts.next(tiny));
    int most = 0;
    int waiting = 1;
    for (int call = 0; call < 1000; ++call) {
      waiting = starts.next(tiny) ? waiting + 1 : 1;
      most = std::max(most, waiting);
      EXPECT_TRUE(starts.next(large));  // waits before it lets others in
    }
    EXPECT_LE(most * sharing, 42) << sharing;
    EXPECT_GE(most, 2);
  }
}

// A kernel of the rank that all others wait for has a multiprocessor that none of theirs has.
TEST(EarlyStarts, OfAllRanksButOneLeaveAMultiprocessor) {
  constexpr int kProcessors = 132;
  for (int sharing = 2; sharing <= kMaxRanks; ++sharing) {
    EarlyStarts starts(sharing, kProcessors);
    Shape shape;
    int there = 0;  // blocks that run or wait
    for (int call = 0; call < 1000; ++call) {
      shape.blocks = 1 + call * 7 % ((kProcessors - 1) / sharing);
      shape.threads = call % 3 == 0 ? 512 : 32;
      const bool tiny = is_tiny(static_cast<std::uint32_t>(shape.blocks * shape.threads));
      const bool early = starts.next(shape);
      const int most = there + shape.blocks;
      if (early) {
        EXPECT_LT((sharing - 1) * most, kProcessors) << sharing << " " << shape.blocks;
      }
      there = early && tiny ? most : shape.blocks;
    }
  }
}

TEST(GpuChoice, EveryChoiceFitsTheArena) {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    for (const int blocks : {1, 2, 7, 16, 33, 64, 132}) {
      for (const std::uint64_t bytes : kSizes) {
        const Host host{ranks, blocks, false};
        const auto all = candidates(host, bytes);
        ASSERT_FALSE(all.empty()) << ranks << " ranks, " << bytes << " bytes";
        EXPECT_EQ(choose(host, bytes).kernel, all.front().shape.kernel);
        EXPECT_EQ(choose(host, bytes).blocks, all.front().shape.blocks);
        for (const Prediction& prediction : all) {
          EXPECT_TRUE(fits(prediction.shape, ranks, packs_of(bytes)));
          EXPECT_LE(prediction.shape.blocks * prediction.shape.threads, blocks * kThreads);
        }
      }
    }
  }
}

TEST(GpuChoice, ReproducibleCallsReduceInRankOrder) {
  for (const std::uint64_t bytes : kSizes) {
    for (const Prediction& p : candidates({4, 64, true}, bytes)) {
      EXPECT_NE(p.shape.kernel, Kernel::ring);
    }
  }
}

TEST(GpuChoice, SmallCallsDoNotEnterByABarrier) {
  for (const int ranks : {2, 4, 8, 16}) {
    EXPECT_FALSE(choose({ranks, 64, false}, 1 << 20).whole);
  }
}

TEST(GpuChoice, TwoRanksNeverNeedMoreThanOneShot) {
  for (const int blocks : {1, 7, 132, 500}) {
    for (const std::uint64_t bytes : kSizes) {
      const Host host{2, blocks, true};
      const auto shape = shape_of(Kernel::one_shot, host, bytes);
      ASSERT_TRUE(shape) << blocks << " blocks, " << bytes << " bytes";
      if (blocks >= 132 || packs_of(bytes) <= 512) {
        EXPECT_EQ(shape->tiled, packs_of(bytes) > kSlots / 2);
      }
      EXPECT_FALSE(shape->whole);
    }
  }
  EXPECT_FALSE(shape_of(Kernel::one_shot, {3, 132, false}, 16 << 20));
}

// A budget of few multiprocessors: two blocks on each.
TEST(GpuChoice, OneShotOfTwoRanksUsesAllOfAFewMultiprocessors) {
  const Shape large = *shape_of(Kernel::one_shot, {2, 32, false}, 512 << 20);
  EXPECT_EQ(std::tuple(large.blocks, large.unroll, large.tiled), std::tuple(64, 2, true));
  EXPECT_TRUE(shape_of(Kernel::one_shot, {2, 32, false}, 4 << 20)->tiled);
  EXPECT_FALSE(shape_of(Kernel::one_shot, {2, 32, false}, 1 << 20)->tiled);
  EXPECT_FALSE(shape_of(Kernel::one_shot, {2, 131, false}, 4 << 20)->tiled);
  const Shape whole = *shape_of(Kernel::one_shot, {2, 131, false}, 512 << 20);
  EXPECT_EQ(std::tuple(whole.blocks, whole.unroll), std::tuple(82, 1));
}

TEST(GpuChoice, TakesTheKernelThatWasMeasuredAsTheFastest) {
  constexpr std::uint64_t kBytes = 5 << 20;
  Host host{4, 132, false};
  ASSERT_NE(choose(host, kBytes).kernel, Kernel::one_shot);
  EXPECT_FALSE(best(host, kBytes).measured);
  for (auto& points : host.measured) points = {{8, 10}, {8 << 20, 20}};
  host.measured[place_of(Kernel::ring)] = {{8, 2}, {8 << 20, 19}};
  EXPECT_EQ(best(host, kBytes).shape.kernel, Kernel::ring);
  EXPECT_TRUE(best(host, kBytes).measured);
  EXPECT_LT(best(host, kBytes).us, 19);
  EXPECT_EQ(candidates(host, kBytes).front().shape.kernel, Kernel::ring);
  // Outside of the sizes, or with a kernel that was not measured, the model decides among all.
  EXPECT_EQ(best(host, 4).shape.kernel, Kernel::one_shot);
  EXPECT_FALSE(best(host, 4).measured);
  host.measured[place_of(Kernel::two_shot)].clear();
  EXPECT_FALSE(best(host, kBytes).measured);
  // A kernel that may not run is nobody's rival.
  host.reproducible = true;
  host.measured[place_of(Kernel::two_shot)] = {{8, 5}, {8 << 20, 50}};
  EXPECT_EQ(best(host, kBytes).shape.kernel, Kernel::two_shot);
  EXPECT_TRUE(best(host, kBytes).measured);
}

// Whatever was measured, and however few multiprocessors there are.
TEST(GpuChoice, UpToASizeTheKernelDoesNotChangeTheBits) {
  for (int ranks = 3; ranks <= kMaxRanks; ++ranks) {
    for (const int blocks : {1, 16, 43, 131}) {
      Host host{ranks, blocks, false};
      for (const bool measured : {false, true}) {
        if (measured) {
          for (auto& points : host.measured) points = {{8, 10}, {1 << 30, 20}};
          host.measured[place_of(Kernel::ring)] = {{8, 1}, {1 << 30, 1}};
          host.measured[place_of(Kernel::tree)] = {{8, 1}, {1 << 30, 1}};
        }
        for (std::uint64_t bytes = 8; bytes <= kSameBitsBytes; bytes *= 2) {
          const Kernel kernel = choose(host, bytes).kernel;
          EXPECT_TRUE(kernel != Kernel::ring && kernel != Kernel::tree)
              << ranks << " ranks, " << blocks << " blocks, " << bytes << " bytes";
        }
      }
      EXPECT_EQ(choose(host, kSameBitsBytes + 16).kernel, Kernel::ring);
    }
  }
}

// To eight ranks and 32 multiprocessors that costs nothing.
TEST(GpuChoice, KernelsOfBlocksLeaveTheArenasEndToARail) {
  for (int ranks = 2; ranks <= kMaxRanks; ++ranks) {
    for (const int blocks : {1, 32, 131}) {
      for (const std::uint64_t block : kSizes) {
        for (const Kernel kernel : {Kernel::reduce_scatter, Kernel::all_gather}) {
          Host host{ranks, blocks, false};
          const Shape alone = shape_of_blocks(kernel, host, block);
          host.rail = true;
          const Shape shape = shape_of_blocks(kernel, host, block);
          const auto peers = static_cast<std::uint64_t>(ranks - 1);
          const std::uint64_t set =
              peers * static_cast<std::uint64_t>(shape.unroll * shape.threads * shape.blocks) * 16;
          // Four sets from the first slot on, or one in either half.
          const std::uint64_t half = (kPairSlotsAt - kSlotsAt) / 2;
          const std::uint64_t end = kSlotsAt + (shape.whole ? 4 * set : half + set);
          ASSERT_LE(end, kPairSlotsAt - kRailBytes) << ranks << " ranks, " << block << " bytes";
          EXPECT_TRUE(fits(shape, ranks, packs_of(block)));
          if (ranks > 8 || blocks > 32) continue;
          EXPECT_EQ(std::tuple(shape.blocks, shape.threads, shape.whole),
                    std::tuple(alone.blocks, alone.threads, alone.whole));
        }
      }
    }
  }
}

TEST(GpuChoice, ATreeIsTakenWhereItWasMeasuredOrAskedFor) {
  constexpr std::uint64_t kBytes = 5 << 20;
  Host host{4, 132, false};
  const auto has_tree = [&] {
    const auto all = candidates(host, kBytes);
    return std::any_of(all.begin(), all.end(),
                       [](const Prediction& p) { return p.shape.kernel == Kernel::tree; });
  };
  EXPECT_FALSE(has_tree());
  for (auto& points : host.measured) points = {{8, 10}, {1 << 30, 20}};
  host.measured[place_of(Kernel::tree)].clear();
  EXPECT_FALSE(has_tree());
  EXPECT_TRUE(best(host, kBytes).measured) << "tables from before trees hold as they are";
  host.measured[place_of(Kernel::tree)] = {{8, 1}, {1 << 30, 2}};
  EXPECT_TRUE(has_tree());
  EXPECT_EQ(best(host, kBytes).shape.kernel, Kernel::tree);
  host.measured[place_of(Kernel::tree)] = {{6 << 20, 1}, {1 << 30, 2}};  // of larger sizes alone
  EXPECT_FALSE(has_tree());
  EXPECT_TRUE(best(host, kBytes).measured);
  host.measured[place_of(Kernel::tree)] = {{8, 1}, {1 << 30, 2}};
  host.measured[place_of(Kernel::ring)].clear();
  EXPECT_FALSE(has_tree()) << "the model decides, and has no place for it";
  for (int ranks = 2; ranks <= kMaxRanks; ++ranks) {
    for (const int blocks : {1, 2, 7, 131}) {
      const auto asked = prediction_of(Kernel::tree, {ranks, blocks, false}, kBytes);
      ASSERT_TRUE(asked) << ranks << " ranks, " << blocks << " blocks";
      EXPECT_EQ(asked->shape.blocks % 2, 0) << "half of them a tree";
      EXPECT_FALSE(prediction_of(Kernel::tree, {ranks, blocks, true}, kBytes));
    }
  }
}

TEST(GpuChoice, DirectIsForRegisteredBuffersAlone) {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    for (const std::uint64_t bytes : kSizes) {
      const Host host{ranks, 132, false};
      for (const Prediction& p : candidates(host, bytes)) {
        EXPECT_NE(p.shape.kernel, Kernel::direct);
      }
      const auto all = candidates(host, bytes, true);
      const auto direct = std::count_if(all.begin(), all.end(), [](const Prediction& p) {
        return p.shape.kernel == Kernel::direct;
      });
      EXPECT_EQ(direct, ranks > 1 ? 1 : 0);
      EXPECT_EQ(best(host, bytes, true).shape.kernel, all.front().shape.kernel);
      for (const Prediction& p : all) {
        EXPECT_TRUE(fits(p.shape, ranks, packs_of(bytes)));
        EXPECT_LE(p.shape.blocks * p.shape.threads, 132 * kThreads);
      }
    }
  }
  EXPECT_EQ(best({4, 132, true}, 8 << 20, true).shape.kernel, Kernel::direct);
}

// A measured kernel beats the model, but may not be compared with the model's direct.
TEST(GpuChoice, DirectWithoutMeasuredTimesIsComparedByTheModel) {
  Host host{4, 132, true};
  for (auto& points : host.measured) points = {{8, 1}, {1 << 30, 2}};
  host.measured[place_of(Kernel::direct)].clear();
  EXPECT_TRUE(best(host, 8 << 20).measured);
  EXPECT_FALSE(best(host, 8 << 20, true).measured);
  EXPECT_EQ(best(host, 8 << 20, true).shape.kernel, Kernel::direct);
  host.measured[place_of(Kernel::direct)] = {{8, 3}, {1 << 30, 4}};
  EXPECT_TRUE(best(host, 8 << 20, true).measured);
  EXPECT_NE(best(host, 8 << 20, true).shape.kernel, Kernel::direct);
}

TEST(GpuChoice, RanksOnOneGpuShareItsProcessors) {
  Ticket a;
  a.processors = 132;
  Ticket b = a;
  b.device[0] = 1;
  EXPECT_EQ(co_resident_blocks(std::vector{a, b}, 1000), 131);
  EXPECT_EQ(co_resident_blocks(std::vector{a, b}, 100), 100);
  EXPECT_EQ(co_resident_blocks(std::vector{a, b, a}, 1000), 65);
  EXPECT_EQ(co_resident_blocks(std::vector<Ticket>(16, a), 128), 8);
}

// As it was measured on two GPUs; ranks that share one have half of its blocks.
TEST(GpuChoice, LargeMovesOfTwoGpusGoBySlotsWhereTheyMayHaveManyBlocks) {
  EXPECT_GT(least_in_bulk(2, 131), 128U << 20);
  EXPECT_EQ(least_in_bulk(2, 66), kLeastInBulk);
  EXPECT_EQ(least_in_bulk(3, 131), kLeastInBulk);
}

TEST(GpuChoose, BlocksOfAnySizeFit) {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    for (const Kernel kernel : {Kernel::reduce_scatter, Kernel::all_gather}) {
      for (std::uint64_t block = 1; block < std::uint64_t{1} << 34; block = block * 5 + 3) {
        for (const int blocks : {1, 32, 132}) {
          const Shape shape = shape_of_blocks(kernel, {ranks, blocks, false}, block);
          EXPECT_TRUE(fits(shape, ranks, packs_of(block))) << ranks << ' ' << block;
          EXPECT_LE(shape.blocks * shape.threads, blocks * kThreads);
        }
      }
    }
  }
}

}  // namespace
}  // namespace gdrx::gpu
