// SPDX-License-Identifier: Apache-2.0
// Which set of kernels a type has: see CMakeLists.txt.
#pragma once

#include "gdrx/types.hpp"

namespace gdrx::gpu {

/// Of one thing a set, that of the type.
template <class T>
T of_type(DataType type, T of_float, T of_half, T of_bfloat16, T of_any) {
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
