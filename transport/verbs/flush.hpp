// SPDX-License-Identifier: Apache-2.0
// Reads through every NIC of ours that push what it has written before into a GPU's memory: PCIe
// lets no read overtake writes. One loopback QP a rail, made when first needed, with one read on it
// at a time: it covers every flush that was started before.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "transport/verbs/core.hpp"

namespace gdrx::verbs {

/// Progress thread only.
class Flusher {
 public:
  explicit Flusher(Core& core) : core_(core) {}
  /// `region` is an index of the Core's.
  Result<Flush> start(std::uint32_t region, std::uint64_t cookie);
  /// Reports those that are done, in order.
  void poll();
  bool busy() const noexcept { return finished_ != started_; }

 private:
  static constexpr std::uint32_t kOutstanding = 64;
  struct Loop {
    std::shared_ptr<CompletionQueue> queue;
    std::unique_ptr<QueuePair> qp;
    std::unique_ptr<Registration> sink;
    std::uint32_t done = 0;    // flushes that need nothing more of this rail
    std::uint32_t covers = 0;  // flushes that the read under way will do
    std::uint32_t waited = 0;  // and those that time will
    std::uint64_t seen = 0;    // of the rail's landed(), before the last read
    bool reading = false;
    bool waiting = false;  // it cannot read: time passes instead
    Instant until{};
    Instant again{};    // when to try again
    Instant overdue{};  // when the read under way is given up
  };
  struct Entry {
    std::uint64_t cookie = 0;
    std::uint32_t region = 0;
  };
  Result<void> open();
  Result<void> open_loop(const Rail& rail, Loop& loop) const;
  void advance(Loop& loop, std::size_t rail);
  void read(Loop& loop, std::size_t rail);
  void take_completion(Loop& loop, std::size_t rail);
  void cannot_read(Loop& loop, std::size_t rail, const std::string& why);

  Core& core_;
  std::vector<Loop> loops_;  // by rail
  Buffer sink_;
  std::array<Entry, kOutstanding> ring_{};
  std::uint32_t started_ = 0;
  std::uint32_t finished_ = 0;
};

}  // namespace gdrx::verbs
