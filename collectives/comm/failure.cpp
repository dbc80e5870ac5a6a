// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/failure.hpp"

namespace gdrx {

bool Failure::set(const Error& error, Blame blame) noexcept {
  const std::lock_guard lock(mutex_);
  if (error_) return false;
  error_ = error;
  blame_ = blame;
  happened_.store(true, std::memory_order_release);  // publishes error_
  return true;
}

Error Failure::error() const noexcept {
  const std::lock_guard lock(mutex_);
  return error_.value_or(Error{Errc::internal, "no failure", 0});
}

Blame Failure::blame() const noexcept {
  const std::lock_guard lock(mutex_);
  return blame_;
}

}  // namespace gdrx
