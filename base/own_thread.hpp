// SPDX-License-Identifier: Apache-2.0
// A thread that gdrx makes in the program's process.
#pragma once

#include <pthread.h>

#include <functional>
#include <thread>

#include "base/thread_cpus.hpp"

namespace gdrx {

/// It has a name, of 15 bytes at most, and takes no signal: those are for the program's threads.
/// Its end waits for it.
class OwnThread {
 public:
  OwnThread() = default;
  /// std::system_error: no thread can be had.
  OwnThread(const char* name, std::function<void()> body);
  /// When this returns it is on the CPUs where it belongs.
  OwnThread(const char* name, const ThreadHome& home, std::function<void()> body);

  bool joinable() const noexcept { return thread_.joinable(); }
  void join() { thread_.join(); }
  void detach() { thread_.detach(); }
  pthread_t handle() noexcept { return thread_.native_handle(); }

 private:
  std::jthread thread_;
};

}  // namespace gdrx
