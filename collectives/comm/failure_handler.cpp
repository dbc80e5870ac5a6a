// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/failure_handler.hpp"

#include <thread>

namespace gdrx {
namespace {

/// A handler that runs on this thread, and the one that it runs in.
struct Telling {
  const FailureHandler* what;
  const Telling* outer;
};

thread_local const Telling* telling = nullptr;

}  // namespace

void FailureHandler::tell(const Error& error) noexcept {
  if (!due_.exchange(false)) return;
  {
    const std::lock_guard lock(mutex_);
    const Telling here{this, telling};
    telling = &here;
    try {
      if (handler_) handler_(error);
    } catch (...) {  // the communicator's destructor waits for what follows
    }
    telling = here.outer;
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

bool FailureHandler::is_telling() const noexcept {
  for (const Telling* mine = telling; mine != nullptr; mine = mine->outer) {
    if (mine->what == this) return true;
  }
  return false;
}

}  // namespace gdrx
