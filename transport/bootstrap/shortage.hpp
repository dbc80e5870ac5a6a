// SPDX-License-Identifier: Apache-2.0
// A kernel that is short of memory (ENOBUFS) says that a socket has room, and takes nothing: who
// waits for room by poll() alone would spin.
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "gdrx/clock.hpp"
#include "transport/bootstrap/secure_socket.hpp"

namespace gdrx {

class Shortage {
 public:
  static constexpr Duration kFirstPause = std::chrono::milliseconds(1);
  static constexpr Duration kLongestPause = std::chrono::milliseconds(50);

  /// Of a socket that has just been given what it takes, and something is `unsent`: what to poll()
  /// for. Nothing where that would not sleep; then `longest` is cut to when another try is due.
  short events(bool unsent, const SecureSocket& socket, Duration& longest) noexcept {
    pollfd entry{socket.fd(), POLLOUT, 0};
    const bool moved = std::exchange(said_, socket.said()) != socket.said();
    // Where some was taken just now, the room has come since.
    if (!unsent || moved || ::poll(&entry, 1, 0) != 1) {
      pause_ = Duration::zero();
      again_ = {};
      return unsent ? POLLOUT : short{0};
    }
    const Instant now = steady_clock().now();
    if (now >= again_) {  // others wake the caller more often than this one may try
      pause_ = std::clamp<Duration>(2 * pause_, kFirstPause, kLongestPause);
      again_ = now + pause_;
    }
    longest = std::min(longest, again_ - now);
    return 0;
  }

 private:
  Duration pause_{};
  Instant again_{};
  std::uint64_t said_ = 0;
};

}  // namespace gdrx
