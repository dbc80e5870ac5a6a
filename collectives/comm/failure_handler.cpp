// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/failure_handler.hpp"

#include <thread>

#include "collectives/comm/in_handler.hpp"

namespace gdrx {

void FailureHandler::tell(const Error& error) noexcept {
  if (!due_.exchange(false)) return;
  {
    const std::lock_guard lock(mutex_);
    try {
      const InHandler here(owner_);
      if (handler_) handler_(error);
    } catch (...) {  // the communicator's destructor waits for what follows
    }
    told_ = true;
  }
  changed_.notify_all();
}

void FailureHandler::mute() {
  const std::lock_guard lock(mutex_);
  handler_ = nullptr;
}

void FailureHandler::await(bool tells_itself, const std::function<void()>& tell) {
  std::unique_lock lock(mutex_);
  while (!told_) {
    if (!tells_itself) {
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    tell();
    std::this_thread::yield();
    lock.lock();
  }
}

}  // namespace gdrx
