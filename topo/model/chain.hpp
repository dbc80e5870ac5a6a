// SPDX-License-Identifier: Apache-2.0
// The bridges above a node, from the root down: what every class is computed from.
#pragma once

#include <vector>

#include "gdrx/topology.hpp"

namespace gdrx::topo {

/// A bridge function. A folded switch gives two: its upstream port (below == kNone), and a
/// downstream port named by the node below it.
struct Port {
  std::size_t node = kNone;
  std::size_t below = kNone;
  bool operator==(const Port&) const = default;
};

struct Chain {
  std::size_t root = kNone;  // kNone: the way up does not end at a host bridge
  std::vector<Port> bridges;
};

Chain chain_above(const Topology& topology, std::size_t node);

/// Length of the common prefix of two chains' bridges.
std::size_t common_bridges(const Chain& a, const Chain& b);

/// The chain above `node` without the bridges of its own card: ConnectX-6 and later, BlueField and
/// AMD's GPUs show some. A Grace's root ports have the vendor of the GPUs below, and stay.
Chain without_own_bridges(const Topology& topology, std::size_t node, Chain chain);

/// NCCL's tree: every second bridge upward from the device (it folds a switch into its upstream
/// port and drops root ports); nearest first. Broadcom's two-level switches are one.
std::vector<std::size_t> nccl_switches(const Topology& topology, const Chain& chain);

/// NCCL 2.30's rules for two PCI devices, NVLink left out.
NcclClass nccl_pci_class(const Topology& topology, std::size_t a, std::size_t b);

}  // namespace gdrx::topo
