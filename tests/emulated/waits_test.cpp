// SPDX-License-Identifier: Apache-2.0
// Emulated kernels that wait for a rank that never comes: they name it, and end.
#include <gtest/gtest.h>

#include <vector>

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

}  // namespace
}  // namespace gdrx::emulated
