// SPDX-License-Identifier: Apache-2.0
// Time is handed in, so that tests can turn it.
#pragma once

#include <chrono>

namespace gdrx {

using Instant = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const noexcept = 0;
};

/// The real one. Stateless.
class SteadyClock final : public Clock {
 public:
  Instant now() const noexcept override { return std::chrono::steady_clock::now(); }
};

const Clock& steady_clock() noexcept;

/// The moment at which a wait gives up. Local to one operation, copied freely.
class Deadline {
 public:
  /// Never, if the clock does not go that far.
  static Deadline after(const Clock& clock, Duration limit) noexcept {
    const Instant now = clock.now();
    return Deadline(limit < Instant::max() - now ? now + limit : Instant::max());
  }
  static Deadline never() noexcept { return Deadline(Instant::max()); }
  bool passed(Instant now) const noexcept { return now >= at_; }
  Instant at() const noexcept { return at_; }
  /// Time left, zero when passed.
  Duration left(Instant now) const noexcept { return passed(now) ? Duration::zero() : at_ - now; }

 private:
  explicit Deadline(Instant at) noexcept : at_(at) {}
  Instant at_;
};

}  // namespace gdrx
