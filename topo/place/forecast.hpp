// SPDX-License-Identifier: Apache-2.0
// What a placement is predicted to give, so that it can be set beside another one.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "topo/place/placement.hpp"

namespace gdrx::topo {

/// GB/s that the slowest rank gets while all do the same, and what limits it; 0: not known.
struct Rate {
  double gbytes = 0;
  std::string limit;
};
struct Forecast {
  Rate ring;                           // each rank sends to the next one, the last to the first
  Rate nic;                            // each rank's GPU, or memory, sends by its NICs
  Rate host;                           // each rank's GPU sends to the memory of its cores
  std::set<std::string> assumed = {};  // rates that these stand on and no source tells
};

/// Flows that share a link share its rate. Where a source tells no rate of a link, none limits.
/// Assumed are rates between sockets, which no source tells: see forecast.cpp.
Forecast forecast(const Topology& topology, const std::vector<RankPlace>& ranks);

/// The same ranks as a launcher that knows nothing may place them: hosts and GPUs in any order, and
/// on each host NICs and cores of any rank. The same seed gives the same order.
std::vector<RankPlace> shuffled(const Placement& placement, std::uint64_t seed);

}  // namespace gdrx::topo
