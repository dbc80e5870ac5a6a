// SPDX-License-Identifier: Apache-2.0
// Connections that have not shown yet who they are: how many come in at once, how many may wait,
// and who has to go first.
#pragma once

#include <algorithm>
#include <cstddef>

#include <optional>
#include <utility>

#include "gdrx/clock.hpp"
#include "gdrx/result.hpp"
#include "transport/bootstrap/fork.hpp"
#include "transport/bootstrap/socket.hpp"

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

/// A listener's: a few come in at a turn, however many stand before it, so that those inside are
/// served meanwhile. The others wait in the kernel's queue.
class Admission {
 public:
  static constexpr int kAtOnce = 16;
  static constexpr Duration kPause = std::chrono::milliseconds(100);
  explicit Admission(int at_once = kAtOnce) : at_once_(at_once) {}

  /// `strangers()` are inside; `put_out()` makes room if it can; `let_in(Socket)` takes one in.
  /// Returns what is wrong with the listener where that is news.
  template <class Strangers, class PutOut, class LetIn>
  std::optional<Error> turn(const Socket& listener, Strangers&& strangers, PutOut&& put_out,
                            LetIn&& let_in) {
    std::optional<Error> news;
    for (int i = 0; i < at_once_ && !paused(); ++i) {
      if (strangers() >= most_strangers() && !put_out()) {
        pause();
        break;
      }
      auto socket = listener.accept();
      if (!socket) {
        // The waiting connection stays: without a pause poll() would spin on it.
        if (!std::exchange(short_, true)) news = std::move(socket).error();
        if (!put_out()) pause();
        continue;
      }
      if (!socket->valid()) break;
      short_ = false;
      let_in(*std::move(socket));
    }
    return news;
  }

  /// Nobody comes in for a moment: the listener is not worth a poll().
  bool paused() const noexcept { return steady_clock().now() < again_; }

 private:
  void pause() noexcept { again_ = steady_clock().now() + kPause; }
  int at_once_;
  Instant again_{};
  bool short_ = false;  // of descriptors or memory, and said so
};

}  // namespace gdrx
