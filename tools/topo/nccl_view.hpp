// SPDX-License-Identifier: Apache-2.0
// NCCL's rings beside gdrx's, for people. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "topo/model/nccl_graph.hpp"

namespace gdrx::tools {

/// gdrx's graphs as a file for NCCL_GRAPH_FILE, under comments that say for which NICs and programs
/// it is. Error: NVLink may join hosts (then NCCL needs NCCL_MNNVL_ENABLE=0, which `one_by_one`
/// says), and what our_nccl_graphs() refuses.
Result<std::string> nccl_graph_file(const topo::Topology& topology, bool alone, bool one_by_one);

/// What NCCL is expected to choose beside gdrx's graph, and why they differ. With `dumped` graphs
/// what these say, in place of what is expected.
Result<std::string> explain_nccl_text(const topo::Topology& topology, bool alone,
                                      const std::vector<topo::NcclGraph>* dumped,
                                      const std::string& source);

}  // namespace gdrx::tools
