// SPDX-License-Identifier: Apache-2.0
// A peer-to-peer measurement as text or JSON. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "gdrx/topology.hpp"
#include "tools/perf/p2p.hpp"

namespace gdrx::perf {

/// What the link between two GPUs can carry one way, GB/s of payload, and what it is:
/// "NV18", "PIX". Nothing where the host does not show it.
struct P2pLimit {
  double gbytes = 0;
  std::string what;
};
std::optional<P2pLimit> p2p_limit(const P2pReport& report, const topo::Topology& topology,
                                  std::size_t from, std::size_t to);

/// Fits 80 columns.
std::string p2p_text(const P2pReport& report, const topo::Topology& topology);
std::string p2p_json(const P2pReport& report, const topo::Topology& topology);

}  // namespace gdrx::perf
