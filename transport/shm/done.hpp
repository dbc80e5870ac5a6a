// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "gdrx/transport.hpp"

namespace gdrx::shm {

/// Writes that are done, of which poll() has not told yet: as many as there is room for.
class Done {
 public:
  bool has_room() const noexcept { return last_ - first_ < kSize; }
  void push(Rank peer, std::uint64_t cookie) noexcept {
    ring_[last_++ % kSize] = {CompletionKind::write_done, peer, 0, cookie};
  }
  std::size_t take(std::span<Completion> to) noexcept {
    const std::size_t count = std::min<std::size_t>(to.size(), last_ - first_);
    for (std::size_t i = 0; i < count; ++i) to[i] = ring_[first_++ % kSize];
    return count;
  }

 private:
  static constexpr std::uint64_t kSize = 1024;
  std::vector<Completion> ring_ = std::vector<Completion>(kSize);
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;
};

}  // namespace gdrx::shm
