// SPDX-License-Identifier: Apache-2.0
// The two measurements. Both ranks call them alike; the figures are rank 0's.
#pragma once

#include "mpi-tests/net_perf/pair.hpp"

namespace gdrx::net_perf {

struct Latency {
  double min = 0;  // microseconds, one way
  double typical = 0;
  double average = 0;
  double p99 = 0;
};
/// Ping-pong of writes with immediate.
Result<Latency> measure_latency(Pair& pair, std::uint64_t bytes, int iterations, int warmup);

struct Bandwidth {
  std::uint64_t messages = 0;  // that this rank sent and the peer has
  double seconds = 0;
  std::uint64_t received = 0;  // by this rank
  std::uint64_t wrong = 0;     // messages with a wrong byte, Options::verify only
};
/// Rank 0 sends, or both with Options::bidirectional.
Result<Bandwidth> measure_bandwidth(Pair& pair, const Options& options, std::uint64_t bytes,
                                    std::uint64_t messages, double seconds);

/// Places for messages of this size: as many as may be under way, in bounded memory.
std::uint64_t slots_of(const Options& options, std::uint64_t bytes) noexcept;

}  // namespace gdrx::net_perf
