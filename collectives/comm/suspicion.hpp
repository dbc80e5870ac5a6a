// SPDX-License-Identifier: Apache-2.0
// A peer that the data path misses. A fabric, or the kernel, notices it in its own words; whether
// it died or left in order the mesh knows, and says so within milliseconds: its word is waited for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "gdrx/clock.hpp"
#include "gdrx/result.hpp"

namespace gdrx {

class Suspicion {
 public:
  /// The mesh's thread had its turn: from that thread.
  void turn() noexcept { turn_.fetch_add(1, std::memory_order_relaxed); }
  /// True: the mesh may still say more than `error` does. `wake()`: the mesh's thread; once.
  template <class Wake>
  bool lasts(const Error& error, Wake wake) {
    if (error.code != Errc::peer_lost) return false;
    const Instant now = steady_clock().now();
    const std::uint32_t turn = turn_.load(std::memory_order_relaxed);
    if (since_ == Instant{}) {
      since_ = now;
      since_turn_ = turn;
      wake();
    }
    // On a loaded machine the mesh's thread may have had no turn in that time: the one that ran at
    // the first miss may have looked before it, the next has not.
    return now - since_ < kMost || turn - since_turn_ < 2;
  }
  /// What ends the communicator if the mesh says nothing.
  void keep(Error error) { kept_ = std::move(error); }
  const std::optional<Error>& kept() const noexcept { return kept_; }
  std::optional<Error> take() { return std::exchange(kept_, std::nullopt); }

 private:
  static constexpr std::chrono::milliseconds kMost{700};
  Instant since_{};
  std::uint32_t since_turn_ = 0;
  std::atomic<std::uint32_t> turn_{0};
  std::optional<Error> kept_;
};

}  // namespace gdrx
