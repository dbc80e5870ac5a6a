// SPDX-License-Identifier: Apache-2.0
#include "gdrx/clock.hpp"

#include "gdrx/cancel.hpp"

namespace gdrx {

namespace {

/// Made before the program runs, so that a child of a fork never waits for a thread of its parent
/// that was making it; never destroyed, for threads that ask it while the process exits.
union Immortal {
  constexpr Immortal() : clock() {}
  ~Immortal() {}
  SteadyClock clock;
};
constinit Immortal immortal;

class EndOfTime final : public Clock {
 public:
  Instant now() const noexcept override { return Instant::max(); }
};
union ImmortalEnd {
  constexpr ImmortalEnd() : clock() {}
  ~ImmortalEnd() {}
  EndOfTime clock;
};
constinit ImmortalEnd end_of_time;

constinit thread_local const std::atomic<bool>* hurried = nullptr;

}  // namespace

const Clock& steady_clock() noexcept {
  if (hurried != nullptr && hurried->load(std::memory_order_relaxed)) return end_of_time.clock;
  return immortal.clock;
}

Cancellable::Cancellable(const std::atomic<bool>& cancelled) noexcept { hurried = &cancelled; }

Cancellable::~Cancellable() { hurried = nullptr; }

std::chrono::milliseconds Cancellable::longest_sleep() noexcept {
  constexpr std::chrono::milliseconds kHurried{100};
  constexpr std::chrono::milliseconds kOthers = std::chrono::hours(1);  // as poll() may
  return hurried != nullptr ? kHurried : kOthers;
}

}  // namespace gdrx
