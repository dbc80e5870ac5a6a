// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/ending.hpp"

#include <utility>

#include "collectives/comm/in_handler.hpp"

namespace gdrx {

bool Ending::arm(Handler handler) {
  handler_ = std::move(handler);
  return (state_.fetch_or(kArmed, std::memory_order_acq_rel) & kDone) != 0;  // publishes handler_
}

void Ending::tell(const std::optional<Error>& error) noexcept {
  try {
    const InHandler here(owner_, this);
    handler_(error);
  } catch (...) {  // it is over all the same
  }
  state_.fetch_or(kTold, std::memory_order_acq_rel);
  state_.notify_all();
}

bool Ending::over() const noexcept { return is_over(state()); }

bool Ending::is_over(std::uint32_t now) const noexcept {
  if ((now & kDone) == 0) return false;
  if ((now & kArmed) == 0 || (now & kTold) != 0) return true;
  return InHandler::of(this);
}

void Ending::await_over() const noexcept {
  for (std::uint32_t now = state(); !is_over(now); now = state()) {
    state_.wait(now, std::memory_order_acquire);
  }
}

}  // namespace gdrx
