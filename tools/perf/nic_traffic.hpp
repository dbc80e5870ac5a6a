// SPDX-License-Identifier: Apache-2.0
// RDMA requests kept on their way over queue pairs, or one at a time. One thread polls.
#pragma once

#include <chrono>

#include "tools/perf/buffer.hpp"
#include "tools/perf/nic_perf.hpp"

namespace gdrx::perf {

/// Memory on both sides, registered, and what connects them.
struct Session {
  std::shared_ptr<NicPort> here;
  std::shared_ptr<NicPort> there;
  std::unique_ptr<Buffer> near;
  std::unique_ptr<Buffer> far;
  std::unique_ptr<verbs::Registration> near_mr;
  std::unique_ptr<verbs::Registration> far_mr;
  std::vector<std::unique_ptr<QpPair>> pairs;
};

/// Requests of `bytes` each until the count or the time is over. In both ways each side is a source
/// of half its buffer and a target of the other half.
Result<NicPerfRow> run_bandwidth(Session& session, const NicPerfOptions& options,
                                 std::size_t bytes);
/// A write there, seen by looking at the memory, and one back: half of the time of both. With GPU
/// memory, which a CPU cannot watch, and for reads: until the completion.
Result<NicPerfRow> run_latency(Session& session, const NicPerfOptions& options, std::size_t bytes);

}  // namespace gdrx::perf
