// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

namespace gdrx::net {

/// What NCCL's LL128 looks at as one, with its flag in the last 8 bytes.
inline constexpr std::size_t kLine = 128;

/// Like memcpy, but every 128 bytes become visible after those before them: the GPU may look for
/// the flags that NCCL's LL128 has at the end of each 128 while they arrive. memcpy may use string
/// or streaming stores, which are visible in any order.
inline void copy_in_order(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  while (bytes >= kLine) {
    std::memcpy(to, from, kLine);
    std::atomic_signal_fence(std::memory_order_release);  // a compiler's fence; x86 keeps stores
#if !defined(__x86_64__)
    std::atomic_thread_fence(std::memory_order_release);
#endif
    to += kLine;
    from += kLine;
    bytes -= kLine;
  }
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace gdrx::net
