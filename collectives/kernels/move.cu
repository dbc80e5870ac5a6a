// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/move.cuh"

#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/launch.hpp"
#include "collectives/kernels/loadable.hpp"

namespace gdrx::gpu {

static const Loadable kLoadableMove(move_runs<2, 1>);

cudaError_t launch_move(const MoveCall& call, int blocks, cudaStream_t stream) {
  const auto launch = [&](auto kernel) {
    return enqueue_grid(kernel, blocks, kMovers + 32, false, stream, call);
  };
  if (call.ranks <= 2) return launch(move_runs<2, 1>);
  if (call.ranks <= 4) return launch(move_runs<2, 3>);
  if (call.ranks <= 8) return launch(move_runs<1, 7>);
  return launch(move_runs<1, 15>);
}

}  // namespace gdrx::gpu
