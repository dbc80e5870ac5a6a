// SPDX-License-Identifier: Apache-2.0
// hwloc's objects as parts. The only files that see hwloc are hwloc.cpp and this one's users.
#pragma once

#include <string>
#include <string_view>

#include "gdrx/topology.hpp"

namespace gdrx::topo {

/// The parts of an hwloc XML text.
Result<Parts> hwloc_parts(std::string_view xml, std::string source);

/// NUMA nodes and packages of the running host.
Result<std::vector<NumaNode>> hwloc_numa();

}  // namespace gdrx::topo
