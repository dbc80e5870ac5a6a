// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/moved_messages.cuh"

#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/launch.hpp"
#include "collectives/kernels/loadable.hpp"

namespace gdrx::gpu {

static const Loadable kLoadableMovedMessages(move_messages<InBulk::by_threads>);

cudaError_t launch_moved(const MovedMessages& call, const PairGrid& grid, cudaStream_t stream) {
  const int threads = grid.threads + 32 * static_cast<int>(call.enters);
  const auto staged = move_messages<InBulk::staged>;
  constexpr int kStaged = kStagedTiles * kBulkTile * sizeof(Pack);
  if (grid.is_staged && has_room_for(staged, kStaged)) {
    return enqueue_staged(staged, grid.blocks, threads, kStaged, stream, call);
  }
  return enqueue_grid(move_messages<InBulk::by_threads>, grid.blocks, threads, false, stream, call);
}

}  // namespace gdrx::gpu
