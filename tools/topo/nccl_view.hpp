// SPDX-License-Identifier: Apache-2.0
// NCCL's rings beside gdrx's, for people. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "topo/model/nccl_graph.hpp"

namespace gdrx::tools {

/// What NCCL is expected to choose beside gdrx's graph, and why they differ. With `dumped` graphs
/// what these say, in place of what is expected.
Result<std::string> explain_nccl_text(const topo::Topology& topology, bool alone,
                                      const std::vector<topo::NcclGraph>* dumped,
                                      const std::string& source);

}  // namespace gdrx::tools
