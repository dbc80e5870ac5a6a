// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "mpi-tests/net_perf/measure.hpp"

namespace gdrx::net_perf {
namespace {

Result<void> send_one(Pair& pair, std::uint64_t bytes, int number) {
  while (GDRX_TRY(pair.send(0, bytes, static_cast<std::uint16_t>(number), kNoCookie)) ==
         Progress::pending) {
    GDRX_TRY(pair.poll());
    GDRX_TRY(pair.idle());
  }
  pair.moved();
  return {};
}

Result<void> await_one(Pair& pair, int number) {
  while (true) {
    for (const Completion& done : GDRX_TRY(pair.poll())) {
      if (done.kind != CompletionKind::immediate) continue;
      pair.moved();
      if (done.immediate == static_cast<std::uint16_t>(number)) return {};
      return fail(Errc::protocol, "a message came out of turn");
    }
    GDRX_TRY(pair.idle());
  }
}

double at(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(
      std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

}  // namespace

Result<Latency> measure_latency(Pair& pair, std::uint64_t bytes, int iterations, int warmup) {
  GDRX_TRY(pair.barrier());
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(iterations + warmup));
  for (int i = 0; i < iterations + warmup; ++i) {
    const Instant before = steady_clock().now();
    if (pair.rank() == 0) GDRX_TRY(send_one(pair, bytes, i));
    GDRX_TRY(await_one(pair, i));
    if (pair.rank() == 1) GDRX_TRY(send_one(pair, bytes, i));
    const Duration round = steady_clock().now() - before;
    times.push_back(std::chrono::duration<double, std::micro>(round).count() / 2);
  }
  GDRX_TRY(pair.barrier());
  times.erase(times.begin(), times.begin() + warmup);
  std::sort(times.begin(), times.end());
  Latency row;
  row.min = times.front();
  row.typical = at(times, 0.5);
  row.average =
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  row.p99 = at(times, 0.99);
  return row;
}

}  // namespace gdrx::net_perf
