// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/ending.hpp"

#include <utility>

namespace gdrx {

/// A handler that runs on this thread, and the one that it runs in.
struct Ending::Telling {
  const Ending* what;
  const Telling* outer;
};

thread_local const Ending::Telling* Ending::telling_ = nullptr;

bool Ending::arm(Handler handler) {
  handler_ = std::move(handler);
  return (state_.fetch_or(kArmed, std::memory_order_acq_rel) & kDone) != 0;  // publishes handler_
}

void Ending::tell(const std::optional<Error>& error) noexcept {
  const Telling here{this, telling_};
  telling_ = &here;
  try {
    handler_(error);
  } catch (...) {  // it is over all the same
  }
  telling_ = here.outer;
  state_.fetch_or(kTold, std::memory_order_acq_rel);
  state_.notify_all();
}

bool Ending::over() const noexcept { return is_over(state()); }

bool Ending::is_over(std::uint32_t now) const noexcept {
  if ((now & kDone) == 0) return false;
  if ((now & kArmed) == 0 || (now & kTold) != 0) return true;
  for (const Telling* mine = telling_; mine != nullptr; mine = mine->outer) {
    if (mine->what == this) return true;
  }
  return false;
}

void Ending::await_over() const noexcept {
  for (std::uint32_t now = state(); !is_over(now); now = state()) {
    state_.wait(now, std::memory_order_acquire);
  }
}

bool Ending::is_telling(const void* owner) noexcept {
  for (const Telling* mine = telling_; mine != nullptr; mine = mine->outer) {
    if (owner == nullptr || mine->what->owner_ == owner) return true;
  }
  return false;
}

}  // namespace gdrx
