// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/combine.cuh"

#include <array>

#include "collectives/kernels/combine.hpp"
#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/loadable.hpp"

namespace gdrx::gpu {
namespace {

constexpr int kBlock = 256;

template <class E>
__global__ void __launch_bounds__(kBlock) combine(const __grid_constant__ HostSum sum) {
  combine_packs<E>(sum, std::uint64_t{blockIdx.x} * kBlock + threadIdx.x,
                   std::uint64_t{gridDim.x} * kBlock);
}

using Kernel = void (*)(HostSum);
// One a DataType, in its order.
constexpr std::array<Kernel, kDataTypeCount> kKernels{combine<Plain<std::int8_t>>,
                                                      combine<Plain<std::uint8_t>>,
                                                      combine<Plain<std::int32_t>>,
                                                      combine<Plain<std::uint32_t>>,
                                                      combine<Plain<std::int64_t>>,
                                                      combine<Plain<std::uint64_t>>,
                                                      combine<Half>,
                                                      combine<Bfloat16>,
                                                      combine<Plain<float>>,
                                                      combine<Plain<double>>,
                                                      combine<E4m3>,
                                                      combine<E5m2>};

const Loadable kLoadable(combine<Half>);

}  // namespace

cudaError_t launch_combine(const HostSum& sum, cudaStream_t stream) {
  if (sum.bytes == 0) return cudaSuccess;
  const std::uint64_t wanted = (packs_of(sum.bytes) + kBlock - 1) / kBlock;
  const auto most = static_cast<std::uint64_t>(sum.blocks);
  const auto blocks = static_cast<int>(wanted < most ? wanted : most);
  return enqueue_alone(kKernels[static_cast<std::size_t>(sum.type)], blocks, kBlock, stream, sum);
}

}  // namespace gdrx::gpu
