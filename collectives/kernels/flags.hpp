// SPDX-License-Identifier: Apache-2.0
// What a GPU and the thread that drives its network tell each other: counters in pinned memory.
// Each is written by one side and only grows, over all calls of a communicator. Plain data for both
// compilers.
#pragma once

#include <cstdint>

#include "collectives/kernels/host_sum.hpp"

namespace gdrx::gpu {

/// What the GPU has done.
enum class Signal : std::uint8_t { begun, scattered, added, gathered };
/// What it may do next.
enum class WaitFlag : std::uint8_t { add, gather };
inline constexpr int kSignals = 4;
inline constexpr int kWaitFlags = 2;

/// A call between hosts, as the network needs to know it.
struct CallRecord {
  std::uint64_t count = 0;
  std::int32_t type = 0;
  std::int32_t op = 0;
  std::int32_t captured = 0;     // 1: from a graph, so that no host posted this one
  std::uint32_t timeout_ms = 0;  // 0: none
  std::uint32_t staged = 0;      // captured and staged: its number, from 1 on
};

/// There is one record: a call begins when the one before it has gathered, so when the host has
/// read that one's.
struct Flags {
  alignas(64) std::uint64_t signals[kSignals];
  CallRecord record;  // of the last call that has begun
  alignas(64) std::uint64_t wait_flags[kWaitFlags];
};

/// The same as the GPU knows it, in memory of its own: each look at the host's is a way over the
/// bus and back. Counters in memory and not in the arguments, because a graph repeats its
/// arguments.
struct Counts {
  std::uint64_t signals[kSignals];
  std::uint64_t taken[kWaitFlags];  // how much of what was allowed it has used
};

constexpr std::uint32_t bit_of(Signal what) noexcept { return 1U << static_cast<int>(what); }

/// One stop of a stream: tells some things, then waits until another is allowed.
struct FlagStep {
  std::uint32_t signals = 0;    // bit_of() each Signal
  std::int32_t waits_for = -1;  // a WaitFlag
  CallRecord record;            // with Signal::begun
};

/// What a kernel is told that is all of a small call: the GPUs of the host scatter into `part`,
/// where the network takes it and leaves the sum, and gather from there. As one kernel it costs the
/// host one launch and not four or five.
struct Relay {
  void* part = nullptr;  // this rank's
  CallRecord record;
  HostSum sum;  // what the GPU adds in between; of no hosts: nothing
};

}  // namespace gdrx::gpu
