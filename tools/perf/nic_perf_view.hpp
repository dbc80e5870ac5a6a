// SPDX-License-Identifier: Apache-2.0
// A NIC's measurement as text or JSON, and what to think of it. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "gdrx/topology.hpp"
#include "tools/perf/nic_perf.hpp"

namespace gdrx::perf {

/// What the port's rate, the PCIe links of the way and, between two hosts, the other host allow.
/// Nothing for a NIC in software and where the host shows none of it.
std::optional<Expectation> expectation(const NicPerfReport& report, const topo::Topology& topology);

std::string nic_perf_text(const NicPerfReport& report, const topo::Topology& topology);
std::string nic_perf_json(const NicPerfReport& report, const topo::Topology& topology);

}  // namespace gdrx::perf
