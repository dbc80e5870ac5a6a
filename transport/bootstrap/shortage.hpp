// SPDX-License-Identifier: Apache-2.0
// A kernel that is short of memory (ENOBUFS) says that a socket has room, and takes nothing: who
// waits for room by poll() alone would spin.
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>

#include "gdrx/clock.hpp"

namespace gdrx {

class Shortage {
 public:
  static constexpr Duration kFirstPause = std::chrono::milliseconds(1);
  static constexpr Duration kLongestPause = std::chrono::milliseconds(50);

  /// Of a socket that has just been given what it takes, and something is `unsent`: what to poll()
  /// for. Nothing where that would not sleep; then `longest` is cut to when another try is due.
  short events(bool unsent, int fd, Duration& longest) noexcept {
    pollfd entry{fd, POLLOUT, 0};
    if (!unsent || ::poll(&entry, 1, 0) != 1) {
      pause_ = Duration::zero();
      return unsent ? POLLOUT : short{0};
    }
    pause_ = std::clamp<Duration>(2 * pause_, kFirstPause, kLongestPause);
    longest = std::min(longest, pause_);
    return 0;
  }

 private:
  Duration pause_{};
};

}  // namespace gdrx
