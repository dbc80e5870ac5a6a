// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/endings.hpp"

#include <utility>

namespace gdrx {

// Without memory: a communicator fails for want of it, too.
void Endings::add(std::shared_ptr<Operation> operation) noexcept {
  const std::lock_guard lock(mutex_);
  Operation* const added = operation.get();
  (first_ ? last_->next_ended : first_) = std::move(operation);
  last_ = added;
  due_.store(true, std::memory_order_relaxed);
}

void Endings::tell_all() noexcept {
  while (true) {
    std::shared_ptr<Operation> operation;
    {
      const std::lock_guard lock(mutex_);
      operation = std::move(first_);
      if (!operation) return;
      first_ = std::move(operation->next_ended);
      if (!first_) due_.store(false, std::memory_order_relaxed);
    }
    operation->end.tell(operation->error);
  }
}

void Endings::watch(std::shared_ptr<Operation> operation) {
  std::list<std::shared_ptr<Operation>> one;
  one.push_back(std::move(operation));
  const std::lock_guard lock(mutex_);
  watched_.splice(watched_.end(), one);
}

bool Endings::look(const std::function<bool(Operation&)>& has_ended) {
  std::list<std::shared_ptr<Operation>> some;
  {
    const std::lock_guard lock(mutex_);
    some.swap(watched_);
  }
  if (some.empty()) return false;
  some.remove_if([&](const std::shared_ptr<Operation>& one) { return has_ended(*one); });
  const bool left = !some.empty();
  const std::lock_guard lock(mutex_);
  watched_.splice(watched_.begin(), some);
  return left || watched_.size() > 0;
}

}  // namespace gdrx
