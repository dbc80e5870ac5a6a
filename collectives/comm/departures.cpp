// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/departures.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

namespace gdrx {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{10};
constexpr milliseconds kLongestEnd{5000};  // what the end of a communicator may take itself

std::atomic<Departures*> current{nullptr};

}  // namespace

// Never destroyed: whoever destroys a communicator while the process ends finds it.
Departures& Departures::of_this_process() {
  Departures* known = current.load(std::memory_order_acquire);
  if (known != nullptr && known->birthplace_.here()) return *known;
  std::unique_ptr<Departures> fresh(new Departures(known));
  if (current.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) {
    return *fresh.release();
  }
  return *known;
}

void Departures::see_to(std::unique_ptr<Communicator> leaving, Deadline deadline) {
  Leaving one{std::move(leaving), deadline};
  if (of_this_process().add(one)) return;
  while (!one.comm->has_left(one.deadline)) std::this_thread::sleep_for(kLook);
}

// exit() calls what is registered while it runs, too: so for communicators of static objects.
bool Departures::add(Leaving& leaving) noexcept {
  try {
    std::list<Leaving> one;
    one.push_back({nullptr, leaving.deadline});
    const std::lock_guard lock(mutex_);
    if (!at_exit_) at_exit_ = std::atexit([] { at_exit(); }) == 0;
    if (!at_exit_) return false;
    if (!running_) {
      if (thread_.joinable()) thread_.join();  // it has ended, or is about to
      thread_ = OwnThread("gdrx-leave", [this] { run(); });
      running_ = true;
    }
    one.front().comm = std::move(leaving.comm);
    new_.splice(new_.end(), one);
    last_ = std::max(last_, leaving.deadline.at());
  } catch (const std::exception&) {
    return false;
  }
  changed_.notify_all();
  return true;
}

// False: there is none left, and the thread is not there any more for whoever comes.
bool Departures::take_new() {
  std::unique_lock lock(mutex_);
  if (!seen_to_.empty()) changed_.wait_for(lock, kLook, [this] { return !new_.empty(); });
  seen_to_.splice(seen_to_.end(), new_);
  running_ = !seen_to_.empty();
  if (!running_) changed_.notify_all();
  return running_;
}

void Departures::run() noexcept {
  while (take_new()) {
    seen_to_.remove_if([](const Leaving& one) { return one.comm->has_left(one.deadline); });
  }
}

void Departures::await_end() noexcept {
  std::unique_lock lock(mutex_);
  at_exit_ = false;
  changed_.wait_until(lock, last_ + kLongestEnd, [this] { return !running_; });
  if (running_ || !thread_.joinable()) return;
  OwnThread ended = std::move(thread_);
  lock.unlock();
  ended.join();
}

void Departures::at_exit() noexcept {
  Departures* const known = current.load(std::memory_order_acquire);
  if (known != nullptr && known->birthplace_.here()) known->await_end();
}

}  // namespace gdrx
