// SPDX-License-Identifier: Apache-2.0
// Copies that are mostly of few bytes: of a number or two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "collectives/reduce/reducer.hpp"

namespace gdrx::reduce {

/// As copy(), without a call where there are 4 to 16 bytes.
inline void copy_few(void* dst, const void* src, std::size_t bytes) noexcept {
  const auto by = [&]<class Part>(Part) {
    Part first;
    Part last;
    const std::size_t end = bytes - sizeof(Part);  // the two may overlap
    std::memcpy(&first, src, sizeof first);
    std::memcpy(&last, static_cast<const std::byte*>(src) + end, sizeof last);
    std::memcpy(dst, &first, sizeof first);
    std::memcpy(static_cast<std::byte*>(dst) + end, &last, sizeof last);
  };
  if (bytes > 16 || bytes < 4) return copy(dst, src, bytes);
  if (bytes >= 8) return by(std::uint64_t{});
  by(std::uint32_t{});
}

}  // namespace gdrx::reduce
