// SPDX-License-Identifier: Apache-2.0
// The reduction of one pack of each operand. Types that training sends have kernels of their own;
// the others share those of Any, which call one function for all of them: a third of the code and
// of the time to compile it.
#pragma once

#include "collectives/kernels/element.cuh"

namespace gdrx::gpu {

/// Any of the types that have no kernels of their own: a kernel is told which.
struct Any {};

template <class Body>
__device__ __forceinline__ auto with_element(std::int32_t type, Body body) {
  switch (static_cast<DataType>(type)) {
    case DataType::int8:
      return body(Plain<std::int8_t>{});
    case DataType::uint8:
      return body(Plain<std::uint8_t>{});
    case DataType::int32:
      return body(Plain<std::int32_t>{});
    case DataType::uint32:
      return body(Plain<std::uint32_t>{});
    case DataType::int64:
      return body(Plain<std::int64_t>{});
    case DataType::uint64:
      return body(Plain<std::uint64_t>{});
    case DataType::float64:
      return body(Plain<double>{});
    case DataType::float8_e4m3:
      return body(E4m3{});
    default:
      return body(E5m2{});
  }
}

struct Reduction {
  std::int32_t type;  // DataType
  std::int32_t op;    // ReduceOp
  std::int32_t over;  // 0, or what a sum is divided by
};

static __device__ __noinline__ Pack reduce_any(const Reduction how, const Pack* operands,
                                               int count) {
  return with_element(how.type, [&](auto element) {
    return with_operator(how.op, [&](auto op) {
      Accumulators<decltype(element)> sum;
      sum.set(operands[0]);
#pragma unroll 1
      for (int i = 1; i < count; ++i) sum.template add<decltype(op)>(operands[i]);
      return sum.finish(how.over);
    });
  });
}

/// operand(0) to operand(count - 1), in their order; `count` is at most kMost.
template <class E, int kMost, class Operand>
__device__ __forceinline__ Pack reduce_packs(const Reduction& how, int count, Operand operand) {
  if constexpr (std::is_same_v<E, Any>) {
    Pack operands[kMost];
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      if (i < count) operands[i] = operand(i);
    }
    return reduce_any(how, operands, count);
  } else {
    return with_operator(how.op, [&](auto op) {
      Accumulators<E> sum;
      sum.set(operand(0));
#pragma unroll
      for (int i = 1; i < kMost; ++i) {
        if (i >= count) break;
        sum.template add<decltype(op)>(operand(i));
      }
      return sum.finish(how.over);
    });
  }
}

}  // namespace gdrx::gpu
