// SPDX-License-Identifier: Apache-2.0
// What NVML says of GPUs, as lines of a snapshot:
//   gpu 0000:18:00.0 90 NVIDIA H200
//   nvlink 0000:18:00.0 switch 18 26.562
//   c2c 0009:01:00.0 10 450
// Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "gdrx/topology.hpp"

namespace gdrx::topo {

inline constexpr const char* kLinksFile = "gdrx/links";

/// Empty where NVML was not there to be asked.
std::string links_text(const Topology& topology);
/// Into parts whose GPUs and nodes are there already. What does not fit is left out.
void add_links_text(Parts& parts, std::string_view text);

}  // namespace gdrx::topo
