// SPDX-License-Identifier: Apache-2.0
// Emulated kernels that wait for a rank that never comes: they name it, and end.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "collectives/gpu/signature.hpp"
#include "tests/emulated/ranks.hpp"

namespace gdrx::emulated {
namespace {

using gpu::Kernel;
using gpu::Shape;
using gpu::Stage;

struct Late {
  Shape shape;
  Stage stage;
};

TEST(EmulatedWaits, ARankThatNeverComesIsNamed) {
  constexpr int kRanks = 3, kAbsent = 2;  // whoever is missing last is named
  for (const Late& late : {Late{{Kernel::one_shot, 1, 32, 1, false, false}, Stage::reducing},
                           Late{{Kernel::two_shot, 1, 32, 1, false, false}, Stage::reducing},
                           Late{{Kernel::two_shot, 1, 32, 1, true, false}, Stage::entering},
                           Late{{Kernel::ring, 1, 32, 1, true, false}, Stage::entering},
                           Late{{Kernel::tree, 2, 32, 1, true, false}, Stage::entering}}) {
    Ranks ranks(kRanks, 1, 0.5);
    // A pack for every thread of each rank's part: none goes on to wait for those who wait.
    std::vector<std::uint32_t> in(kRanks * 32 * 4), out(in.size());
    std::vector<std::vector<std::uint32_t>> outs(kRanks, out);
    for (int r = 0; r < kRanks; ++r) {
      if (r == kAbsent) continue;
      ranks.launch(r, late.shape, DataType::uint32, ReduceOp::sum, in.data(),
                   outs[static_cast<std::size_t>(r)].data(), in.size() * 4);
    }
    ranks.finish();  // returns
    for (int r = 0; r < kRanks; ++r) {
      if (r == kAbsent) continue;
      const gpu::Report& report = ranks.report(r);
      EXPECT_EQ(report.failed, 1U) << static_cast<int>(late.shape.kernel);
      EXPECT_EQ(report.stage, static_cast<std::uint32_t>(late.stage));
      EXPECT_EQ(report.peer, static_cast<std::uint32_t>(kAbsent));
    }
  }
}

// Rank 0 stalls within a call. Rank 1 gives up, and rank 2, which is more patient, must not get
// from it what it did not receive.
TEST(EmulatedWaits, WhoGaveUpPassesNothingOn) {
  for (const Shape& shape :
       {Shape{Kernel::ring, 1, 32, 1, true, false}, Shape{Kernel::tree, 2, 32, 1, true, false},
        Shape{Kernel::two_shot, 1, 32, 1, true, false},
        Shape{Kernel::two_shot, 1, 32, 1, false, false}}) {
    Ranks ranks(3, 1, 1.5);
    ranks.set_timeout(1, 0.3);
    const std::vector<std::uint32_t> in(3 * 32 * 4, 1);
    ranks.pretend_to_enter(0, shape, DataType::uint32, ReduceOp::sum, in.size() * 4);
    std::vector<std::vector<std::uint32_t>> out(3, std::vector<std::uint32_t>(in.size()));
    for (const int r : {1, 2}) {
      ranks.launch(r, shape, DataType::uint32, ReduceOp::sum, in.data(),
                   out[static_cast<std::size_t>(r)].data(), in.size() * 4);
    }
    ranks.finish();
    EXPECT_EQ(ranks.report(1).failed, 1U);
    EXPECT_EQ(ranks.report(2).failed, 1U) << "kernel " << static_cast<int>(shape.kernel);
  }
}

struct Other {
  const char* what;
  DataType type;
  ReduceOp op;
  std::size_t words;  // of the 3 * 32 * 4 that the others have
  Kernel kernel;
};

// Rank 2 calls another thing than ranks 0 and 1, and is named with both calls: at once, and not
// after the timeout, whatever data happens to fit together.
TEST(EmulatedWaits, ARankInAnotherCallIsNamed) {
  constexpr std::size_t kWords = 3 * 32 * 4;
  const Shape light{Kernel::one_shot, 1, 32, 1, false, false};
  const Shape two{Kernel::two_shot, 1, 32, 1, false, false};
  const Shape whole{Kernel::two_shot, 1, 32, 1, true, false};
  const Shape blocks{Kernel::reduce_scatter, 3, 32, gpu::unroll_of_blocks(3), false, false};
  for (const Shape& shape : {light, two, whole, blocks}) {
    for (const Other& other :
         {Other{"operator", DataType::uint32, ReduceOp::max, kWords, shape.kernel},
          Other{"type", DataType::float32, ReduceOp::sum, kWords, shape.kernel},
          Other{"fewer", DataType::uint32, ReduceOp::sum, 96, shape.kernel},
          Other{"kernel", DataType::uint32, ReduceOp::sum, kWords, Kernel::ring}}) {
      Ranks ranks(3, 1, 60);
      const std::vector<std::uint32_t> in(kWords, 1);
      std::vector<std::vector<std::uint32_t>> out(3, std::vector<std::uint32_t>(kWords));
      const auto block_of = [](const Shape& of, std::size_t words) {
        return of.kernel == Kernel::reduce_scatter ? words * 4 / 3 : 0;
      };
      for (const int r : {0, 1}) {
        ranks.launch(r, shape, DataType::uint32, ReduceOp::sum, in.data(),
                     out[static_cast<std::size_t>(r)].data(), kWords * 4, block_of(shape, kWords));
      }
      const Shape ring{Kernel::ring, 1, 32, 1, true, false};
      const Shape& its = other.kernel == shape.kernel ? shape : ring;
      ranks.launch(2, its, other.type, other.op, in.data(), out[2].data(), other.words * 4,
                   block_of(its, other.words));
      ranks.finish();
      for (int r = 0; r < 3; ++r) {
        const gpu::Report& report = ranks.report(r);
        // Where all data came, rank 0 looks at rank 1 alone; it is told by the others' hosts.
        if (r == 0 && report.failed == 0) continue;
        EXPECT_EQ(report.failed, 1U) << other.what << " rank " << r;
        ASSERT_EQ(report.stage, static_cast<std::uint32_t>(Stage::disagreeing)) << other.what;
        const gpu::Called mine = gpu::called_of(report.mine);
        const gpu::Called theirs = gpu::called_of(report.theirs);
        EXPECT_TRUE(r == 2 ? report.peer < 2 : report.peer == 2) << other.what;
        EXPECT_EQ((r == 2 ? mine : theirs).bytes, other.words * 4) << other.what;
        EXPECT_EQ((r == 2 ? mine : theirs).op, other.op) << other.what;
        EXPECT_EQ((r == 2 ? mine : theirs).type, other.type) << other.what;
        EXPECT_EQ((r == 2 ? theirs : mine).bytes, kWords * 4) << other.what;
      }
    }
  }
}

// Kernels behind one that gave up are two calls ahead of a rank that is late in that one: they must
// not write into its slots.
TEST(EmulatedWaits, WhatFollowsAKernelThatGaveUpSendsNothing) {
  Ranks ranks(3, 1, 60);
  ranks.set_timeout(1, 0.3);
  const Shape shape{Kernel::one_shot, 1, 32, 1, false, false};
  constexpr std::size_t kWords = 32 * 4;
  std::vector<std::vector<std::uint32_t>> in, out;
  for (const std::uint32_t value : {1U, 100U, 10000U}) in.emplace_back(kWords, value);
  for (int i = 0; i < 9; ++i) out.emplace_back(kWords, 0U);
  const auto launch = [&](int r, std::size_t call) {
    ranks.launch(r, shape, DataType::uint32, ReduceOp::sum, in[call].data(),
                 out[static_cast<std::size_t>(r) * 3 + call].data(), kWords * 4);
  };
  for (const std::size_t call : {0U, 1U, 2U}) launch(1, call);
  launch(2, 0);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  launch(0, 0);
  ranks.finish();
  EXPECT_EQ(ranks.report(1).failed, 1U);
  for (const int r : {0, 2}) {
    EXPECT_EQ(ranks.report(r).failed, 0U);
    EXPECT_EQ(out[static_cast<std::size_t>(r) * 3], std::vector<std::uint32_t>(kWords, 3)) << r;
  }
}

}  // namespace
}  // namespace gdrx::emulated
