// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/failure.hpp"

namespace gdrx {

bool Failure::set(const Error& error) noexcept {
  const std::lock_guard lock(mutex_);
  if (error_) return false;
  error_ = error;
  happened_.store(true, std::memory_order_release);  // publishes error_
  return true;
}

Error Failure::error() const noexcept {
  const std::lock_guard lock(mutex_);
  return error_.value_or(Error{Errc::internal, "no failure", 0});
}

}  // namespace gdrx
