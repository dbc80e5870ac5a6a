// SPDX-License-Identifier: Apache-2.0
// The test as the network of one rank: what its GPU tells, and what it is allowed.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "collectives/gpu/path.hpp"

namespace gdrx::gpu {

inline std::uint64_t signalled(Path& path, Signal what) {
  return std::atomic_ref(path.flags().signals[static_cast<int>(what)]).load();
}

/// Whether it comes to so many, and no more, within some seconds.
inline bool comes(Path& path, Signal what, std::uint64_t count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (signalled(path, what) < count) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return signalled(path, what) == count;
}

inline void allow(Path& path, WaitFlag what) {
  std::atomic_ref(path.flags().wait_flags[static_cast<int>(what)]).fetch_add(1);
}

}  // namespace gdrx::gpu
