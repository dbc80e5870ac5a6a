// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/launch.hpp"
#include "collectives/kernels/loadable.hpp"
#include "collectives/kernels/pack.cuh"

namespace gdrx::gpu {
namespace {

__global__ void clear(std::uint8_t* arena, std::uint32_t owner) {
  const std::uint32_t first = blockIdx.x * blockDim.x + threadIdx.x;
  auto* packs = reinterpret_cast<Pack*>(arena);
  for (std::uint32_t i = first; i < kArenaBytes / sizeof(Pack); i += gridDim.x * blockDim.x) {
    packs[i] = i < kSlotsAt / sizeof(Pack) ? Pack{0, 0} : Pack{kSentinelLow, kSentinelHigh};
    if (i == 0) packs[i].low = std::uint64_t{owner} << 32;  // behind `calls`
  }
}

const Loadable kLoadableClear(clear);

}  // namespace

cudaError_t clear_arena(std::uint8_t* arena, std::uint32_t owner, cudaStream_t stream) {
  return enqueue_alone(clear, 64, kThreads, stream, arena, owner);
}

}  // namespace gdrx::gpu
