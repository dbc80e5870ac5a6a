// SPDX-License-Identifier: Apache-2.0
// Sizes of pinned host memory, which a process never gives back and therefore uses again. Pure.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace gdrx {

/// At least so many bytes, more than 0, in whole pages: a quarter more at most, or a page. There
/// are four sizes between a power of two and the next, so that memory of one call serves those of
/// about its size, and a process holds no more of a size than it once used at a time.
constexpr std::uint64_t pinned_size(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t step = std::max(kPage, std::bit_floor(bytes) / 4);
  return (bytes + step - 1) / step * step;
}

}  // namespace gdrx
