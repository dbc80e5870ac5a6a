// SPDX-License-Identifier: Apache-2.0
// What two hosts tell each other of a measurement, as text, and back. Whoever connected may have
// sent anything: errors are Errc::protocol, and numbers are in bounds.
#pragma once

#include "tools/perf/far_port.hpp"
#include "tools/perf/nic_perf.hpp"

namespace gdrx::perf {

/// What the leader wants, and back into options that keep their own device and memory. Nothing is
/// taken that gdrx perf itself could not have been told.
std::string plan_words(const NicPerfOptions& options);
Result<NicPerfOptions> read_plan(const std::string& text, NicPerfOptions own);

/// The other host's port and memory.
struct Far {
  FarPort port;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  bool host_memory = false;
  std::vector<std::uint32_t> qps;
  std::string memory;  // for people
  std::optional<Expectation> limit;
};
std::string far_words(const Far& far);
/// With `qps` queue pairs, no more and no less.
Result<Far> read_far(const std::string& text, std::size_t qps);

/// What a follower that acts has counted.
std::string row_words(const NicPerfRow& row);
Result<NicPerfRow> read_row(const std::string& text);

}  // namespace gdrx::perf
