// SPDX-License-Identifier: Apache-2.0
// Which set of kernels a call has: see CMakeLists.txt.
#pragma once

#include "gdrx/types.hpp"

namespace gdrx::gpu {

/// What training does all the time has kernels of its own, if the type is one of theirs: sums of at
/// most eight ranks. All else goes by those of any type.
constexpr int kHotRanks = 8;
constexpr bool is_hot(ReduceOp op, int ranks) noexcept {
  return (op == ReduceOp::sum || op == ReduceOp::avg) && ranks <= kHotRanks;
}

/// Of one thing a set, that of the call.
template <class T>
T of_call(DataType type, ReduceOp op, int ranks, T of_float, T of_half, T of_bfloat16, T of_any) {
  if (!is_hot(op, ranks)) return of_any;
  switch (type) {
    case DataType::float32:
      return of_float;
    case DataType::float16:
      return of_half;
    case DataType::bfloat16:
      return of_bfloat16;
    default:
      return of_any;
  }
}

}  // namespace gdrx::gpu
