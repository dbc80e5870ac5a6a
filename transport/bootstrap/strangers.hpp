// SPDX-License-Identifier: Apache-2.0
// Connections that have not shown yet who they are: how many may wait, and who has to go first.
#pragma once

#include <algorithm>
#include <cstddef>

#include "gdrx/clock.hpp"
#include "transport/bootstrap/fork.hpp"

namespace gdrx {

/// A rank says hello at once, and under load within this. Nobody who speaks is put out for others.
inline constexpr Duration kStrangerSilence = std::chrono::seconds(2);

/// Since when a connection has been silent. Speaking a byte at a time helps for a while only.
class Silence {
 public:
  Instant since() const noexcept { return since_; }
  Instant came() const noexcept { return came_; }
  void spoke() noexcept {
    const Instant now = steady_clock().now();
    if (now - came_ < 4 * kStrangerSilence) since_ = now;
  }

 private:
  Instant came_ = steady_clock().now();
  Instant since_ = came_;
};

/// A part of the descriptors that this process may have.
inline std::size_t most_strangers() noexcept {
  return std::clamp<std::size_t>(descriptor_limit() / 4, 16, 4096);
}

/// Puts out the one who has been silent longest, if that is for kStrangerSilence. `silent_since`
/// tells of each whether and since when: Instant::max() of those who must stay. False if all stay.
template <class List, class SilentSince>
bool put_out_a_stranger(List& guests, SilentSince&& silent_since) {
  const auto first = std::min_element(
      guests.begin(), guests.end(),
      [&](const auto& a, const auto& b) { return silent_since(a) < silent_since(b); });
  if (first == guests.end()) return false;
  const Instant since = silent_since(*first);
  if (since == Instant::max() || steady_clock().now() - since < kStrangerSilence) return false;
  guests.erase(first);
  return true;
}

}  // namespace gdrx
