// SPDX-License-Identifier: Apache-2.0
// When something last moved in a communicator: what those who drive it take their time by.
#pragma once

#include <cstdint>
#include <utility>

#include "gdrx/clock.hpp"

namespace gdrx {

/// Used by the thread that drives.
class Pace {
 public:
  /// A waiting thread begins.
  void restart() noexcept { idle_ = 0; }
  /// After a round. Rounds without result up to this one.
  std::uint64_t count(bool moved) noexcept { return idle_ = moved ? 0 : idle_ + 1; }
  /// Once in so many rounds without result.
  bool is_time(std::uint64_t rounds) const noexcept { return idle_ % rounds == rounds - 1; }

  /// A call has ended.
  void stir() noexcept { stirred_ = true; }
  /// From the mesh's thread, which found work or none: since when there is none.
  Duration resting(bool work, Instant now) noexcept {
    if (std::exchange(stirred_, false) || work) active_ = now;
    return now - active_;
  }

  /// The mesh's thread had something to do.
  void move(Instant now) noexcept { moved_ = now; }
  Duration still(Instant now) const noexcept { return now - moved_; }

 private:
  std::uint64_t idle_ = 0;
  Instant active_{};      // when there was last work
  bool stirred_ = false;  // since then
  Instant moved_{};
};

}  // namespace gdrx
