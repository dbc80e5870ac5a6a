// SPDX-License-Identifier: Apache-2.0
// The cores that ranks may have, and which of them each gets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gdrx/topology.hpp"

namespace gdrx::topo {

struct NodeCores {
  int numa = -1;
  std::vector<std::vector<int>> cores;  // each with the CPUs of it that may be used
};

/// NUMA nodes with CPUs of `allowed` (nothing: all), in order of their numbers. Where a source does
/// not tell siblings, ranges of one length are taken for the hyperthreads of the same cores.
std::vector<NodeCores> cores_of(const Topology& topology,
                                const std::optional<std::string>& allowed);

struct Seat {
  std::vector<std::size_t> nodes;  // whose cores it has: one, but of fewer ranks than nodes several
  std::vector<std::vector<int>> cores;
  int sharers = 1;    // ranks with these same cores
  bool near = false;  // on the node that it wants
};

/// A seat for each rank. `wanted[i]`: rank i's NUMA node, -1 if any will do. Ranks of a node share
/// its cores so that their numbers differ by one at most. Where a node has fewer cores than ranks,
/// ranks go to the nearest node that has one left, and only then do they share a core.
std::vector<Seat> seats(const Topology& topology, const std::vector<NodeCores>& nodes,
                        const std::vector<int>& wanted);

}  // namespace gdrx::topo
