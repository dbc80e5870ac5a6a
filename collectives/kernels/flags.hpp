// SPDX-License-Identifier: Apache-2.0
// What a GPU and the thread that drives its network tell each other: counters in pinned memory.
// Each is written by one side and only grows, over all calls of a communicator. Plain data for both
// compilers.
#pragma once

#include <cstdint>

namespace gdrx::gpu {

/// What the GPU has done.
enum class Told : std::uint8_t { begun, scattered, added, gathered };
/// What it may do next.
enum class Allowed : std::uint8_t { add, gather };
inline constexpr int kTold = 4;
inline constexpr int kAllowed = 2;

/// A call between hosts, as the network needs to know it.
struct CallRecord {
  std::uint64_t count = 0;
  std::int32_t type = 0;
  std::int32_t op = 0;
  std::int32_t captured = 0;  // 1: from a graph, so that no host posted this one
};

/// There is one record: a call begins when the one before it has gathered, so when the host has
/// read that one's.
struct Flags {
  alignas(64) std::uint64_t told[kTold];
  CallRecord record;  // of the last call that has begun
  alignas(64) std::uint64_t allowed[kAllowed];
  alignas(64) std::uint64_t taken[kAllowed];  // the GPU's own: how much of it was used
};

/// One stop of a stream: tells one thing, then waits until another is allowed. A counter in the
/// memory of both and not in the arguments, because a graph repeats its arguments.
struct FlagStep {
  std::int32_t tells = -1;   // a Told
  std::int32_t awaits = -1;  // an Allowed
  CallRecord record;         // with Told::begun
};

}  // namespace gdrx::gpu
