// SPDX-License-Identifier: Apache-2.0
// What a kernel is told that adds up what came from other hosts. Plain data for both compilers.
#pragma once

#include <cstdint>

#include "gdrx/types.hpp"

namespace gdrx::gpu {

/// One vector of each host, added in the order of hosts. All at multiples of 16 bytes, in memory
/// that may be read and written to the next such multiple behind the end.
struct HostSum {
  const std::uint8_t* own = nullptr;     // that of host `self`
  const std::uint8_t* landed = nullptr;  // those of the others, in their order
  std::uint64_t stride = 0;              // between two of them
  std::int32_t hosts = 0;
  std::int32_t self = 0;
  std::uint8_t* into = nullptr;
  std::uint64_t bytes = 0;
  DataType type{};
  ReduceOp op{};
  std::int32_t blocks = 64;      // at most so many
  std::int32_t finish_over = 0;  // avg: what the sum is divided by; 0: not at all
};

}  // namespace gdrx::gpu
