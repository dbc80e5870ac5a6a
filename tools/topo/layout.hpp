// SPDX-License-Identifier: Apache-2.0
// The tree that a picture shows: only what leads to a GPU or a NIC, without bridges that fork
// nothing.
#pragma once

#include <string>
#include <vector>

#include "gdrx/topology.hpp"

namespace gdrx::tools {

struct PictureNode {
  enum class Kind { host_bridge, pci_switch, gpu, nic } kind = Kind::host_bridge;
  std::size_t node = topo::kNone;
  std::string title;
  std::string detail;
  std::vector<PictureNode> children;
};

struct PictureGroup {
  int numa = -1;
  std::vector<PictureNode> roots;
};

/// By NUMA node. Devices without a place come last, as roots of a group of their own.
std::vector<PictureGroup> picture(const topo::Topology& topology);

/// "NV18 between all GPUs", "NVLink between 12 of 28 pairs", or empty.
std::string nvlink_summary(const topo::Topology& topology);

}  // namespace gdrx::tools
