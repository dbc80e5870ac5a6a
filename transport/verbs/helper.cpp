// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/helper.hpp"

#include <exception>

namespace gdrx::verbs {

Helper::~Helper() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    calls_.clear();
  }
  wake_.notify_one();
}

void Helper::post(std::function<void()> call) {
  if (!own_thread_ || !start()) return call();
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
  }
  wake_.notify_one();
}

bool Helper::start() {
  if (thread_.joinable()) return true;
  try {
    thread_ = OwnThread("gdrx-verbs", home_, [this] { run(); });
  } catch (const std::exception&) {  // no more threads, or no memory: the caller has to wait
    own_thread_ = false;
  }
  return own_thread_;
}

void Helper::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ending_ || !calls_.empty(); });
    if (ending_) return;
    const std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    call();
    lock.lock();
  }
}

}  // namespace gdrx::verbs
