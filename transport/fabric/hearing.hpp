// SPDX-License-Identifier: Apache-2.0
// Whom the data path has heard of lately: evidence that a rank lives, where its control connection
// is silent.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "gdrx/types.hpp"

namespace gdrx {

/// Any thread.
class Hearing {
 public:
  explicit Hearing(std::size_t ranks) : heard_(ranks) {}

  /// Hot path. Nearly always a load of what is in the cache; it orders nothing.
  void hear(Rank peer) noexcept {
    const auto at = static_cast<std::size_t>(index(peer));
    if (at >= heard_.size() || heard_[at].load(std::memory_order_relaxed)) return;
    heard_[at].store(true, std::memory_order_relaxed);
  }
  /// Whether anything of that rank has come since it was last asked.
  bool take(Rank peer) noexcept {
    const auto at = static_cast<std::size_t>(index(peer));
    return at < heard_.size() && heard_[at].exchange(false, std::memory_order_relaxed);
  }

 private:
  std::vector<std::atomic<bool>> heard_;
};

}  // namespace gdrx
