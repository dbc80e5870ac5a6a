// SPDX-License-Identifier: Apache-2.0
// The reduction of one pack of each operand. Sums of the types that training sends have kernels of
// their own; all else shares those of Any, which call one function.
#pragma once

#include "collectives/kernels/any.cuh"
#include "collectives/kernels/element.cuh"
#include "collectives/kernels/type_sets.hpp"

namespace gdrx::gpu {

/// Any type: a kernel is told which.
struct Any {};

/// Peers that its kernels for more than four ranks are compiled for.
template <class E>
constexpr int kManyPeers = std::is_same_v<E, Any> ? kMaxRanks - 1 : kHotRanks - 1;

/// operand(0) to operand(count - 1), in their order; `count` is at most kMost.
template <class E, int kMost, class Operand>
__device__ __forceinline__ Pack reduce_packs(const Reduction& how, int count, Operand operand) {
  if constexpr (std::is_same_v<E, Any>) {
    Pack operands[kMost];
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      if (i < count) operands[i] = operand(i);
    }
    const auto* first = reinterpret_cast<const std::uint8_t*>(operands);
    return reduce_any(how, {first + sizeof(Pack), sizeof(Pack), first, 0}, count);
  } else {  // a sum: see is_hot()
    Accumulators<E> sum;
    sum.set(operand(0));
#pragma unroll
    for (int i = 1; i < kMost; ++i) {
      if (i >= count) break;
      sum.add(operand(i));
    }
    return sum.finish(how.over);
  }
}

}  // namespace gdrx::gpu
