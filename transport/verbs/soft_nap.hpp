// SPDX-License-Identifier: Apache-2.0
// How long a poll sleeps that finds nothing, where processors make the packets.
#pragma once

#include <algorithm>
#include <chrono>

#include "gdrx/clock.hpp"

namespace gdrx::verbs {

/// As much later a message may be found, of the time that it has been awaited for.
inline constexpr int kNapShare = 8;
/// A call that only asks, as gdrxTest, sleeps no longer.
inline constexpr Duration kLongestNap = std::chrono::microseconds(500);

/// After `still` without news. On a busy processor short naps are none: their timer has run out
/// before the scheduler took another thread, and each costs an interrupt. So they grow with the
/// wait.
constexpr Duration soft_nap(Duration still, Duration least) noexcept {
  return std::clamp(still / kNapShare, least, std::max(least, kLongestNap));
}

}  // namespace gdrx::verbs
