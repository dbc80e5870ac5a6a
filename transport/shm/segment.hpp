// SPDX-License-Identifier: Apache-2.0
// Shared memory that a process maps once, however many of its ranks use it.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "gdrx/result.hpp"
#include "transport/memory/arena.hpp"

namespace gdrx::shm {

/// Thread-safe, as everything about it. Its descriptor is kept for peers that come later, by its
/// maker alone; no child of fork() has it.
class Segment {
 public:
  static Result<std::shared_ptr<Segment>> create(std::size_t bytes);
  /// Another rank's. Errc::peer_lost: there is no such process, or its memory is gone.
  static Result<std::shared_ptr<Segment>> open(const ArenaTicket& ticket);
  explicit Segment(Arena arena) noexcept : arena_(std::move(arena)) {}
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::span<std::byte> bytes() const noexcept { return arena_.bytes(); }
  ArenaTicket ticket() const noexcept { return arena_.ticket(); }
  /// Nobody maps it any more: its descriptor goes. By its maker, which is the only one to have it.
  void seal() noexcept;

 private:
  Arena arena_;
  std::atomic<bool> made_here_{false};
};

}  // namespace gdrx::shm
