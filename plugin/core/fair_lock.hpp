// SPDX-License-Identifier: Apache-2.0
// Who may use a device context. NCCL's progress thread polls all the time and its service thread
// registers memory now and then: the former never waits, the latter is let in.
#pragma once

#include <atomic>
#include <mutex>

namespace gdrx::net {

class FairLock {
 public:
  /// For calls that may wait a little: connect, accept, registration, close.
  void lock() {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  /// For the data path. False: try again later. No system call either way.
  bool try_lock() { return waiting_.load(std::memory_order_relaxed) == 0 && mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  std::atomic<int> waiting_{0};  // only a hint: relaxed
};

}  // namespace gdrx::net
