// SPDX-License-Identifier: Apache-2.0
// Adds up what NICs have written beside what lies here: the sum of one rail's share.
#pragma once

#include "collectives/kernels/host_sum.hpp"
#include "collectives/kernels/reduction.cuh"

namespace gdrx::gpu {

__device__ __forceinline__ Pack operand(const HostSum& sum, int host, std::uint64_t pack) {
  const int place = host < sum.self ? host : host - 1;
  const std::uint8_t* at =
      host == sum.self ? sum.own : sum.landed + static_cast<std::uint64_t>(place) * sum.stride;
  return reinterpret_cast<const Pack*>(at)[pack];
}

/// What thread `first` of `threads` adds, all of them the whole.
template <class E>
struct Combine {
  static __device__ __forceinline__ void run(const HostSum& sum, std::uint64_t first,
                                             std::uint64_t threads) {
    const std::uint64_t packs = packs_of(sum.bytes);
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
};

template <>
struct Combine<Any> {
  static __device__ __noinline__ void run(const HostSum& sum, std::uint64_t first,
                                          std::uint64_t threads) {
    with_element(static_cast<std::int32_t>(sum.type),
                 [&](auto element) { Combine<decltype(element)>::run(sum, first, threads); });
  }
};

}  // namespace gdrx::gpu
