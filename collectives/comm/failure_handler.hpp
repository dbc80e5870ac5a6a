// SPDX-License-Identifier: Apache-2.0
// The one call of the program's handler of a failure.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "gdrx/result.hpp"

namespace gdrx {

/// It is called without a lock that a caller may hold: it may look at the communicator, or take its
/// time.
class FailureHandler {
 public:
  using Handler = std::function<void(const Error&)>;

  /// Before there is another thread.
  void set(const void* owner, Handler handler) {
    owner_ = owner;
    handler_ = std::move(handler);
  }
  // Any thread, as all that follows.
  /// The failure is known, and all else that it asks for was done.
  void make_due() noexcept { due_ = true; }
  bool is_due() const noexcept { return due_; }
  /// Calls the handler if it is due. Once.
  void tell(const Error& error) noexcept;
  /// It is not called any more; returns when a call under way has ended.
  void mute();
  /// Until it has been called. `tells_itself`: this thread is the one that tells, and `tell` is to
  /// be called here: a handler of another communicator may be what calls this.
  void await(bool tells_itself, const std::function<void()>& tell);

 private:
  const void* owner_ = nullptr;  // whose failure it is
  Handler handler_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> due_{false};
  bool told_ = false;
};

}  // namespace gdrx
