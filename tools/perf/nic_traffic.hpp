// SPDX-License-Identifier: Apache-2.0
// RDMA requests kept on their way over queue pairs, or one at a time. One thread polls.
#pragma once

#include <functional>

#include "tools/perf/lane.hpp"
#include "tools/perf/nic_perf.hpp"

namespace gdrx::perf {

inline bool is_latency(Test test) { return test == Test::write_lat || test == Test::read_lat; }
inline bool is_read(Test test) { return test == Test::read_bw || test == Test::read_lat; }
inline ibv_wr_opcode opcode_of(Test test) {
  return is_read(test) ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
}

/// Requests on every lane until the count or the time is over. `ways`: how many of the two
/// directions the lanes are; figures are of one direction. Lanes have messages of one size.
Result<NicPerfRow> run_bandwidth(const std::vector<Lane>& lanes, int ways,
                                 const NicPerfOptions& options);

/// Runs `once`, which gets its round (1 to 250, never the same twice in a row) and gives
/// microseconds, as often or as long as the options say, after some that do not count.
Result<NicPerfRow> run_latency(const NicPerfOptions& options,
                               const std::function<Result<double>(std::uint8_t round)>& once);
double micros_since(std::chrono::steady_clock::time_point start);

}  // namespace gdrx::perf
