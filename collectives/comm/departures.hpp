// SPDX-License-Identifier: Apache-2.0
// Communicators that are destroyed here while other ranks may still need them.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>

#include "base/own_thread.hpp"
#include "collectives/comm/communicator.hpp"
#include "transport/bootstrap/fork.hpp"

namespace gdrx {

/// One thread of the process sees to them, and is there while there are any. What a process that
/// ends owes to its peers it still gives: exit() waits for the thread, which gives up each in time.
class Departures {
 public:
  /// After drain() and mute(): it ends when every rank is as far, or by `deadline`. Where no thread
  /// can be had this one waits.
  static void see_to(std::unique_ptr<Communicator> leaving, Deadline deadline);

 private:
  struct Leaving {
    std::unique_ptr<Communicator> comm;
    Deadline deadline;
  };

  explicit Departures(Departures* parents) : parents_(parents) {}
  static Departures& of_this_process();
  static void at_exit() noexcept;
  bool add(Leaving& leaving) noexcept;
  void run() noexcept;
  bool take_new();
  void await_end() noexcept;

  const Birthplace birthplace_;
  Departures* const parents_;  // a child of fork() has its bytes and never touches them; or null
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Leaving> new_;
  std::list<Leaving> seen_to_;  // by the thread alone
  OwnThread thread_;
  bool running_ = false;
  bool at_exit_ = false;  // it is registered, and was not called yet
  Instant last_{};        // of the deadlines
};

}  // namespace gdrx
