// SPDX-License-Identifier: Apache-2.0
// A trace file: the events of one rank's communicators, as Chrome's trace format has them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "collectives/trace/event_ring.hpp"
#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx::trace {

/// "%r" becomes the rank and "%p" the process id; a name with neither gets ".RANK" behind it.
std::string file_name(const std::string& pattern, Rank rank);

/// Process id: the rank. Thread: the communicator's rows. Times: the host's monotonic clock, the
/// same for all of its ranks. `now`: how long what has not ended lasts.
/// `untimed`: calls whose time on the GPU it lacks.
std::string to_json(const Ring::Reading& reading, Rank rank, Instant now,
                    std::uint64_t untimed = 0);

class Recording {
 public:
  static constexpr std::size_t kEvents = 65536;  // 4 MiB

  /// The one of this name in this process: communicators of a rank share it. It stays.
  static std::shared_ptr<Recording> open(const std::string& pattern, Rank rank);

  Ring& ring() noexcept { return ring_; }
  std::uint16_t new_communicator() noexcept {
    return communicators_.fetch_add(1, std::memory_order_relaxed);  // a number is all that is taken
  }
  const std::string& name() const noexcept { return name_; }
  void count_untimed() noexcept { untimed_.fetch_add(1, std::memory_order_relaxed); }
  struct Written {
    std::size_t events = 0;
    std::uint64_t dropped = 0;
  };
  /// Replaces the file: it is whole at every moment. Any thread.
  Result<Written> write();

 private:
  Recording(std::string name, Rank rank) : name_(std::move(name)), rank_(rank), ring_(kEvents) {}

  std::string name_;
  Rank rank_;
  Ring ring_;
  std::atomic<std::uint16_t> communicators_{0};
  std::atomic<std::uint64_t> untimed_{0};
  std::mutex writing_;
};

}  // namespace gdrx::trace
