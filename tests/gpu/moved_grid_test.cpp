// SPDX-License-Identifier: Apache-2.0
// The grids of what goes in bulk, for every share of a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "collectives/kernels/moved_messages.hpp"

namespace gdrx::gpu {
namespace {

/// As Carrier deals them out: a warp has one relay at most, and kPairTurns tasks.
bool has_warps_for_all(const PairGrid& grid, std::uint32_t tasks, std::uint32_t relays) {
  const auto warps = static_cast<std::uint32_t>(grid.blocks * grid.threads / 32);
  if (relays > warps) return false;
  std::vector<bool> begun(tasks);
  for (std::uint32_t i = 0; i < warps; ++i) {
    const std::uint32_t warp = i < relays ? i + warps - relays : i - relays;
    for (int turn = 0; turn < kPairTurns; ++turn) {
      const std::uint32_t task = warp + static_cast<std::uint32_t>(turn) * warps;
      if (task < tasks) begun[task] = true;
    }
  }
  return std::all_of(begun.begin(), begun.end(), [](bool one) { return one; });
}

TEST(GpuMovedGrid, HasAWarpForEachRelayAndTaskWhateverTheShare) {
  constexpr int kBlocks = 131;
  for (int ranks = 3; ranks <= kMaxRanks; ++ranks) {
    const std::uint32_t most = channels_of_moved(ranks, channels_of_pair(ranks, kBlocks));
    for (std::uint32_t relays = 0; relays <= most; ++relays) {
      const std::uint32_t tasks = relays * static_cast<std::uint32_t>(ranks - 2);
      for (int share = least_blocks_of_relays(relays); share <= kBlocks; ++share) {
        if (share < least_blocks_of_pairs(tasks + relays)) continue;  // then in turns
        for (const std::uint64_t copied : {0U, 1U << 26}) {
          const PairGrid grid = grid_of_moved(tasks, relays, copied, share);
          ASSERT_LE(grid.blocks, share);
          ASSERT_TRUE(has_warps_for_all(grid, tasks, relays))
              << ranks << " ranks, " << relays << " relays, share " << share;
        }
      }
    }
  }
}

}  // namespace
}  // namespace gdrx::gpu
