// SPDX-License-Identifier: Apache-2.0
// The last events of a rank, in memory of a fixed size.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "collectives/trace/event.hpp"

namespace gdrx::trace {

/// Any thread may write while another reads: every word is an atomic, and a reader leaves out what
/// changed under its eyes. Writing allocates nothing, locks nothing and waits for nobody.
class Ring {
 public:
  explicit Ring(std::size_t events) : slots_(events) {}

  /// The event's number, for end().
  std::uint64_t add(const Event& event) noexcept;
  /// Too late if the event was overwritten: then nothing happens.
  void end(std::uint64_t number, Duration length) noexcept;
  /// The same for what is known of an event only after it was added.
  void set(std::uint64_t number, Instant begin, Duration length) noexcept;

  struct Reading {
    std::vector<Event> events;  // the oldest first
    std::uint64_t dropped = 0;  // overwritten before, or while it was read
  };
  Reading read() const;

 private:
  static constexpr std::size_t kWords = 7;
  static constexpr std::size_t kBegin = 0;
  static constexpr std::size_t kLength = 1;  // the word that end() writes
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> version{0};  // 2 n + 1 while event n is written, 2 n + 2 after it
    std::array<std::atomic<std::uint64_t>, kWords> words{};
  };
  static std::array<std::uint64_t, kWords> pack(const Event& event) noexcept;
  static Event unpack(const std::array<std::uint64_t, kWords>& words) noexcept;

  std::vector<Slot> slots_;
  std::atomic<std::uint64_t> next_{0};
};

}  // namespace gdrx::trace
