// SPDX-License-Identifier: Apache-2.0
// What a kernel is told that multiplies what is added afterwards. Plain data for both compilers.
#pragma once

#include <cstdint>

#include "gdrx/types.hpp"

namespace gdrx::gpu {

/// to[i] = factor * from[i], rounded to the type. At any alignment that the type has.
struct Scaling {
  void* to = nullptr;  // may be `from`
  const void* from = nullptr;
  std::uint64_t count = 0;
  DataType type{};
  const void* factor = nullptr;      // in GPU memory, read by the kernel; null: it is the next
  alignas(8) std::uint8_t own[8]{};  // of no type with kernels an element is longer
};

}  // namespace gdrx::gpu
