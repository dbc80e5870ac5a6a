// SPDX-License-Identifier: Apache-2.0
// Adds up what NICs have written beside what lies here: the sum of one rail's share.
#include <array>

#include "collectives/kernels/combine.hpp"
#include "collectives/kernels/element.cuh"
#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/loadable.hpp"

namespace gdrx::gpu {
namespace {

constexpr int kBlock = 256;

__device__ __forceinline__ Pack operand(const HostSum& sum, int host, std::uint64_t pack) {
  const int place = host < sum.self ? host : host - 1;
  const std::uint8_t* at =
      host == sum.self ? sum.own : sum.landed + static_cast<std::uint64_t>(place) * sum.stride;
  return reinterpret_cast<const Pack*>(at)[pack];
}

template <class E>
__global__ void __launch_bounds__(kBlock) combine(const __grid_constant__ HostSum sum) {
  const std::uint64_t packs = packs_of(sum.bytes);
  const std::uint64_t threads = static_cast<std::uint64_t>(gridDim.x) * kBlock;
  const std::uint64_t first = static_cast<std::uint64_t>(blockIdx.x) * kBlock + threadIdx.x;
  for (std::uint64_t pack = first; pack < packs; pack += threads) {
    const auto add_all = [&](auto op) {
      Accumulators<E> sums;
      sums.set(operand(sum, 0, pack));
      for (int host = 1; host < sum.hosts; ++host) {
        sums.template add<decltype(op)>(operand(sum, host, pack));
      }
      return sums.finish(sum.finish_over);
    };
    reinterpret_cast<Pack*>(sum.into)[pack] =
        with_operator(static_cast<std::int32_t>(sum.op), add_all);
  }
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
