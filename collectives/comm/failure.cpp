// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/failure.hpp"

#include <utility>

namespace gdrx {

bool Failure::set(Error error) {
  const std::lock_guard lock(mutex_);
  if (error_) return false;
  error_ = std::move(error);
  happened_.store(true, std::memory_order_release);  // publishes error_
  return true;
}

Error Failure::error() const {
  const std::lock_guard lock(mutex_);
  return error_.value_or(Error{Errc::internal, "no failure", 0});
}

}  // namespace gdrx
