// SPDX-License-Identifier: Apache-2.0
// Operations that have ended and whose handlers are due, and those that nobody but a GPU ends.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "collectives/comm/operation.hpp"

namespace gdrx {

/// Any thread. Handlers are called without a lock.
class Endings {
 public:
  Endings() = default;
  ~Endings() { tell(); }
  Endings(const Endings&) = delete;
  Endings& operator=(const Endings&) = delete;

  /// Its handler is due. Once.
  void add(std::shared_ptr<Operation> operation) noexcept;
  bool due() const noexcept { return due_.load(std::memory_order_relaxed); }
  /// Calls the handlers that are due, in the order in which their operations ended.
  void tell() noexcept {
    if (due()) tell_all();
  }

  void watch(std::shared_ptr<Operation> operation);
  /// Looks at those that are watched. True: some have not ended. By one thread at a time.
  bool look(const std::function<bool(Operation&)>& has_ended);

  std::mutex marks;  // of those who look at an operation's mark

 private:
  void tell_all() noexcept;

  std::mutex mutex_;
  std::shared_ptr<Operation> first_;  // each has the next
  Operation* last_ = nullptr;
  std::atomic<bool> due_{false};
  std::list<std::shared_ptr<Operation>> watched_;
};

}  // namespace gdrx
