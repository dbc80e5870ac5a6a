// SPDX-License-Identifier: Apache-2.0
// Adds up what NICs have written beside what lies here: the sum of one rail's share.
#pragma once

#include "collectives/kernels/host_sum.hpp"
#include "collectives/kernels/reduction.cuh"

namespace gdrx::gpu {

/// One pack of every host.
__device__ __forceinline__ Operands operands_of(const HostSum& sum, std::uint64_t pack) {
  const std::uint64_t at = pack * sizeof(Pack);
  return {sum.landed + at, sum.stride, sum.own + at, sum.self};
}

/// What thread `first` of `threads` adds, all of them the whole. A sum: see is_hot().
template <class E>
struct Combine {
  static __device__ __forceinline__ void run(const HostSum& sum, std::uint64_t first,
                                             std::uint64_t threads) {
    const std::uint64_t packs = packs_of(sum.bytes);
    for (std::uint64_t pack = first; pack < packs; pack += threads) {
      const Operands operands = operands_of(sum, pack);
      const auto operand = [&](int i) { return *reinterpret_cast<const Pack*>(operands.at(i)); };
      Accumulators<E> sums;
      sums.set(operand(0));
      for (int host = 1; host < sum.hosts; ++host) sums.add(operand(host));
      reinterpret_cast<Pack*>(sum.into)[pack] = sums.finish(sum.finish_over);
    }
  }
};

template <>
struct Combine<Any> {
  static __device__ __noinline__ void run(const HostSum& sum, std::uint64_t first,
                                          std::uint64_t threads) {
    const Reduction how{static_cast<std::int32_t>(sum.type), static_cast<std::int32_t>(sum.op),
                        sum.finish_over};
    const std::uint64_t packs = packs_of(sum.bytes);
#pragma unroll 1
    for (std::uint64_t pack = first; pack < packs; pack += threads) {
      reinterpret_cast<Pack*>(sum.into)[pack] = reduce_any(how, operands_of(sum, pack), sum.hosts);
    }
  }
};

}  // namespace gdrx::gpu
