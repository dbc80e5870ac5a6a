// SPDX-License-Identifier: Apache-2.0
// A NIC's measurement as text or JSON, and what to think of it. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "gdrx/topology.hpp"
#include "tools/perf/nic_perf.hpp"

namespace gdrx::perf {

std::string_view to_string(Test test);  // "write_bw"
std::optional<Test> parse_test(std::string_view text);

/// What the port's rate and the PCIe links of the way allow, in gigabits a second one way. Nothing
/// for a NIC in software and where the host shows neither.
struct Expectation {
  double gigabits = 0;
  std::string why;  // "port rate 400 Gb/s", "PIX, PCIe 252 Gb/s at 0000:15:00.0"
};
std::optional<Expectation> expectation(const NicPerfReport& report, const topo::Topology& topology);

std::string nic_perf_text(const NicPerfReport& report, const topo::Topology& topology);
std::string nic_perf_json(const NicPerfReport& report, const topo::Topology& topology);

}  // namespace gdrx::perf
