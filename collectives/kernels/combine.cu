// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/combine.cuh"

#include "collectives/kernels/combine.hpp"
#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/guard.cuh"
#include "collectives/kernels/loadable.hpp"
#include "collectives/kernels/type_sets.hpp"

namespace gdrx::gpu {
namespace {

template <class E>
__global__ void __launch_bounds__(kBlock)
    combine(const __grid_constant__ HostSum sum, const __grid_constant__ Guard guard) {
  if (is_closed(guard)) return;
  Combine<E>::run(sum, std::uint64_t{blockIdx.x} * kBlock + threadIdx.x,
                  std::uint64_t{gridDim.x} * kBlock);
}

const Loadable kLoadableCombine(combine<Half>);

}  // namespace

cudaError_t launch_combine(const HostSum& sum, const Guard& guard, cudaStream_t stream) {
  if (sum.bytes == 0) return cudaSuccess;
  const std::uint64_t wanted = (packs_of(sum.bytes) + kBlock - 1) / kBlock;
  const auto most = static_cast<std::uint64_t>(sum.blocks);
  const auto blocks = static_cast<int>(wanted < most ? wanted : most);
  const auto kernel =
      of_call(sum.type, sum.op, 1, combine<Float>, combine<Half>, combine<Bfloat16>, combine<Any>);
  return enqueue_alone(kernel, blocks, kBlock, stream, sum, guard);
}

}  // namespace gdrx::gpu
