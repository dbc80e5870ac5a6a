// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/blocks.cuh"
#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/launch.hpp"
#include "collectives/kernels/loadable.hpp"

namespace gdrx::gpu {

static const Loadable kLoadableGather(all_gather<4, 1>);

cudaError_t launch_all_gather(const Call& call, const Shape& shape, cudaStream_t stream) {
  if (call.ranks <= 2) return enqueue(all_gather<4, 1>, shape, stream, call, shape.whole);
  if (call.ranks <= 4) return enqueue(all_gather<2, 3>, shape, stream, call, shape.whole);
  if (call.ranks <= 8) return enqueue(all_gather<1, 7>, shape, stream, call, shape.whole);
  return enqueue(all_gather<1, 15>, shape, stream, call, shape.whole);
}

}  // namespace gdrx::gpu
