// SPDX-License-Identifier: Apache-2.0
// Whom the running calls wait for: asked by any thread, answered by the one that drives. And what
// else is done meanwhile.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gdrx/clock.hpp"
#include "gdrx/result.hpp"
#include "gdrx/transport.hpp"

namespace gdrx {

struct Waiting {
  struct Running {
    std::string text;  // the call, and what it waits for
    Duration runs{};
  };
  std::vector<Running> calls;
  std::vector<Rank> ranks;  // of all of them, ascending, each once
  std::size_t behind = 0;   // calls that have not begun
};

/// What a thread of the program's runs while it waits, each time before it gives its core away;
/// `rounds`: how many in a row have moved nothing. A thread of ours does not run the program's: its
/// MPI may have been told that one thread calls it.
struct WaitHook {
  void (*run)(void* user, std::uint64_t rounds) = nullptr;
  void* user = nullptr;
};

/// A question at a time.
class WaitingQuestion {
 public:
  /// Any thread. `look_myself`: the answer, if nobody drives; empty: somebody does. Errc::timeout:
  /// he gave no answer.
  Result<Waiting> ask(Deadline deadline,
                      const std::function<std::optional<Waiting>()>& look_myself);
  /// By the thread that drives, often.
  bool asked() const noexcept { return asked_.load(std::memory_order_relaxed); }
  void answer(Waiting waiting);

 private:
  std::mutex asking_;
  std::atomic<bool> asked_{false};
  std::mutex mutex_;
  std::condition_variable answered_;
  std::optional<Waiting> answer_;
};

}  // namespace gdrx
