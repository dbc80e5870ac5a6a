// SPDX-License-Identifier: Apache-2.0
// A device's thread for calls of its driver that may take long, so that who polls never waits.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "base/own_thread.hpp"
#include "base/thread_cpus.hpp"

namespace gdrx::verbs {

class Helper {
 public:
  Helper() = default;
  /// Waits for the call that its thread is in. The others are dropped.
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  /// From here on calls are made by who posts them: for tests that have one thread.
  void stay_in_the_caller() noexcept { own_thread_ = false; }
  /// Before the first call.
  void belong(ThreadHome home) { home_ = std::move(home); }
  /// In the order in which they were posted, and outside of every lock. What a call needs, it owns.
  void post(std::function<void()> call);

 private:
  bool start();
  void run();

  bool own_thread_ = true;
  ThreadHome home_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> calls_;
  bool ending_ = false;
  OwnThread thread_;  // from the first call on; last: it uses the others
};

/// A call that a Helper makes, and its answer.
template <class Value>
class Asked {
 public:
  template <class Call>
  void ask(Helper& helper, Call call) {
    state_ = std::make_shared<State>();
    helper.post([state = state_, call = std::move(call)] {
      try {
        state->value.emplace(call());
      } catch (const std::bad_alloc&) {  // no answer: it is asked again
      }
      state->ready.store(true, std::memory_order_release);
    });
  }
  /// Asked and not taken yet.
  bool pending() const noexcept { return state_ != nullptr; }
  /// Once, when it is there.
  std::optional<Value> take() {
    if (!state_ || !state_->ready.load(std::memory_order_acquire)) return std::nullopt;
    std::optional<Value> value = std::move(state_->value);
    state_.reset();
    return value;
  }
  /// Nobody wants its answer any more.
  void forget() noexcept { state_.reset(); }

 private:
  struct State {
    std::atomic<bool> ready{false};
    std::optional<Value> value;
  };
  std::shared_ptr<State> state_;
};

}  // namespace gdrx::verbs
