// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/choose.hpp"

#include <gtest/gtest.h>

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
          EXPECT_LE(prediction.shape.blocks, blocks);
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

TEST(GpuChoice, RanksOnOneGpuShareItsProcessors) {
  Ticket a;
  a.processors = 132;
  Ticket b = a;
  b.device[0] = 1;
  EXPECT_EQ(co_resident_blocks(std::vector{a, b}, 128), 128);
  EXPECT_EQ(co_resident_blocks(std::vector{a, b, a}, 128), 66);
  EXPECT_EQ(co_resident_blocks(std::vector<Ticket>(16, a), 128), 8);
}

}  // namespace
}  // namespace gdrx::gpu
