// SPDX-License-Identifier: Apache-2.0
// Launch of one element type's moves that add.
#pragma once

#include "collectives/kernels/add.cuh"
#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/launch.hpp"

namespace gdrx::gpu {

template <class E>
cudaError_t launch_add(const MoveCall& call, int blocks, cudaStream_t stream) {
  const auto launch = [&](auto kernel) {
    return enqueue_grid(kernel, blocks, kMovers + 32, false, stream, call);
  };
  if (call.ranks <= 2) return launch(add_runs<E, 2, 1>);
  if (call.ranks <= 4) return launch(add_runs<E, 2, 3>);
  return launch(add_runs<E, 1, kManyPeers<E>>);
}

}  // namespace gdrx::gpu
