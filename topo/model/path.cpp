// SPDX-License-Identifier: Apache-2.0
// The class of a path, in nvidia-smi's words and in NCCL's, and its slowest link.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "topo/model/chain.hpp"

namespace gdrx::topo {
namespace {

struct PciClass {
  PathClass path = PathClass::unknown;
  bool certain = true;
  int bridges = 0;
};

// NCCL's file drops root ports and host bridges, so a CPU's children may share either or none.
PciClass below_one_cpu(const PciNode& a, const PciNode& b) {
  const bool one_bus = a.bus && b.bus && a.kind == NodeKind::device && b.kind == NodeKind::device &&
                       a.bus->domain == b.bus->domain && a.bus->bus == b.bus->bus;
  if (one_bus && a.bus->bus == 0) return {PathClass::phb, true, 0};
  if (one_bus) return {PathClass::pix, false, 1};
  return {PathClass::phb, false, 2};
}

// `top`: the chain's highest node below the root.
std::size_t top(const Topology& topology, std::size_t node) {
  const auto& nodes = topology.nodes();
  while (nodes[node].parent != kNone && nodes[nodes[node].parent].kind != NodeKind::root) {
    node = nodes[node].parent;
  }
  return node;
}

// The rule of `nvidia-smi topo -mp`: see topo/README.md.
PciClass classify(const Topology& topology, std::size_t a, const Chain& above_a, std::size_t b,
                  const Chain& above_b) {
  if (above_a.root == kNone || above_b.root == kNone) {
    // The way is hidden, but two NUMA nodes are two NUMA nodes.
    const int at_a = topology.numa_of(a);
    const int at_b = topology.numa_of(b);
    const bool apart = at_a >= 0 && at_b >= 0 && at_a != at_b;
    return {apart ? PathClass::sys : PathClass::unknown, true, 0};
  }
  const std::size_t common = common_bridges(above_a, above_b);
  const std::size_t apart_a = above_a.bridges.size() - common;
  const std::size_t apart_b = above_b.bridges.size() - common;
  const int touched = static_cast<int>(apart_a + apart_b) + (common > 0 ? 1 : 0);
  const bool one_root = above_a.root == above_b.root;
  if (one_root && common > 0) {
    const bool one_switch = apart_a <= 1 && apart_b <= 1;
    return {one_switch ? PathClass::pix : PathClass::pxb, true, touched};
  }
  if (one_root && !topology.nodes()[above_a.root].exact) {
    const auto& nodes = topology.nodes();
    PciClass found = below_one_cpu(nodes[top(topology, a)], nodes[top(topology, b)]);
    found.bridges += touched;
    return found;
  }
  if (one_root) return {PathClass::phb, true, touched};
  const int numa_a = topology.numa_of(a);
  const bool one_numa = numa_a >= 0 && numa_a == topology.numa_of(b);
  return {one_numa ? PathClass::node : PathClass::sys, true, touched};
}

PciClass classify(const Topology& topology, std::size_t a, std::size_t b) {
  if (a == kNone || b == kNone) return {};
  // Two ports that a source shows as one function are one card.
  if (a == b) return {PathClass::pix, true, 0};
  return classify(topology, a, chain_above(topology, a), b, chain_above(topology, b));
}

const Nic* as_nic(const Topology& topology, DeviceId id) {
  return topology.is_gpu(id) ? nullptr : &topology.nics()[index(id) - topology.gpus().size()];
}

// What the bytes see: a card's own bridges are no distance, and Data Direct moves them elsewhere.
PathClass effective(const Topology& topology, DeviceId a, DeviceId b, PathClass raw) {
  PathClass best = raw;
  const auto consider = [&](std::size_t x, std::size_t y) {
    if (x == kNone || y == kNone || x == y) return;
    best = std::min(best, classify(topology, x, y).path);
    const Chain above_x = without_own_bridges(topology, x, chain_above(topology, x));
    const Chain above_y = without_own_bridges(topology, y, chain_above(topology, y));
    best = std::min(best, classify(topology, x, above_x, y, above_y).path);
  };
  const auto dma = [&](DeviceId id) {
    const Nic* nic = as_nic(topology, id);
    return nic && nic->dma_node != kNone ? nic->dma_node : topology.node(id);
  };
  consider(topology.node(a), topology.node(b));
  if (dma(a) != topology.node(a) || dma(b) != topology.node(b)) consider(dma(a), dma(b));
  return best;
}

bool same_package(const Topology& topology, std::size_t a, std::size_t b) {
  const int package = topology.package_of(topology.numa_of(a));
  return package >= 0 && package == topology.package_of(topology.numa_of(b));
}

bool one_numa(const Topology& topology, std::size_t a, std::size_t b) {
  return topology.numa_of(a) >= 0 && topology.numa_of(a) == topology.numa_of(b);
}

bool one_card(const Topology& topology, std::size_t a, std::size_t b) {
  if (a == b) return true;
  const auto& bus_a = topology.nodes()[a].bus;
  const auto& bus_b = topology.nodes()[b].bus;
  return bus_a && bus_b && bus_a->domain == bus_b->domain && bus_a->bus == bus_b->bus &&
         bus_a->device == bus_b->device;
}

void nccl_class(const Topology& topology, DeviceId a, DeviceId b, Path& path) {
  const std::size_t node_a = topology.node(a);
  const std::size_t node_b = topology.node(b);
  if (path.nvlinks > 0) {
    path.nccl = NcclClass::nvl;
    return;
  }
  if (node_a == kNone || node_b == kNone) return;
  // NCCL clears the function digit of a NIC's bus id: the ports of a card are one device.
  const bool card =
      !topology.is_gpu(a) && !topology.is_gpu(b) && one_card(topology, node_a, node_b);
  path.nccl = card ? NcclClass::loc : nccl_pci_class(topology, node_a, node_b);
  if (topology.is_gpu(a) == topology.is_gpu(b)) return;
  const Gpu& gpu = topology.gpus()[index(topology.is_gpu(a) ? a : b)];
  if (gpu.c2c_links > 0 && path.nccl > NcclClass::p2c &&
      (one_numa(topology, node_a, node_b) || same_package(topology, node_a, node_b))) {
    path.nccl = NcclClass::p2c;
  }
}

std::string why_nccl_differs(const Topology& topology, DeviceId a, const Path& path) {
  const auto differs = [&](PathClass smi, NcclClass nccl) {
    return path.pci == smi && path.nccl == nccl;
  };
  if (path.smi == PathClass::nvlink || path.nccl == NcclClass::unknown ||
      to_string(path.pci) == to_string(path.nccl)) {
    return {};
  }
  if (path.nccl == NcclClass::p2c) return "the GPU reaches the CPU and its NIC over NVLink-C2C";
  if (differs(PathClass::pxb, NcclClass::pix)) {
    return "NCCL takes a two-level switch for one";
  }
  if (differs(PathClass::node, NcclClass::phb)) {
    return "NCCL's CPU is a NUMA node: it has no NODE";
  }
  if (path.nccl == NcclClass::loc) return "NCCL takes the ports of one card for one device";
  if (differs(PathClass::sys, NcclClass::phb)) {
    return topology.numa_of(topology.node(a)) < 0
               ? "no NUMA node is known: NCCL takes all for one CPU"
               : "NCCL's CPU is a NUMA node";
  }
  if (path.nccl == NcclClass::phb) {
    return "NCCL does not count a root port, or cannot read a bus id on the way";
  }
  return "NCCL counts switches, not bridges";
}

struct Slowest {
  std::optional<double> gbytes;
  std::string where;
  void take(std::optional<double> rate, const std::string& name) {
    if (rate && (!gbytes || *rate < *gbytes)) {
      gbytes = rate;
      where = name;
    }
  }
};

// The links strictly below the last common bridge. A downstream port's link is the one below it,
// everything else's the one above it: both lie on the path.
void slowest_link(const Topology& topology, DeviceId a, DeviceId b, Path& path) {
  Slowest slowest;
  const auto& nodes = topology.nodes();
  const std::size_t ends[2] = {topology.node(a), topology.node(b)};
  if (ends[0] != kNone && ends[1] != kNone && ends[0] != ends[1]) {
    const Chain chains[2] = {chain_above(topology, ends[0]), chain_above(topology, ends[1])};
    const std::size_t common =
        chains[0].root == chains[1].root ? common_bridges(chains[0], chains[1]) : 0;
    for (int side = 0; side < 2; ++side) {
      slowest.take(gbytes(nodes[ends[side]].link), nodes[ends[side]].name);
      for (std::size_t i = common; i < chains[side].bridges.size(); ++i) {
        const Port& port = chains[side].bridges[i];
        // A folded switch's link is its uplink: not on the way between its own ports.
        if (port.below == kNone) slowest.take(gbytes(nodes[port.node].link), nodes[port.node].name);
      }
    }
  }
  for (const DeviceId id : {a, b}) {
    const Nic* nic = as_nic(topology, id);
    if (nic && nic->gigabits > 0) slowest.take(nic->gigabits / 8, nic->name + "'s port");
  }
  path.bottleneck = slowest.gbytes;
  path.limit = slowest.where;
}

std::string remark(const Topology& topology, DeviceId a, DeviceId b, const Path& path) {
  const std::size_t node_a = topology.node(a);
  const std::size_t node_b = topology.node(b);
  for (const DeviceId id : {a, b}) {
    if (topology.node(id) != kNone) continue;
    const Nic* nic = as_nic(topology, id);
    return fmt::format("{} {}", topology.name(id),
                       nic && nic->is_virtual ? "is virtual: it has no place on the PCI tree"
                                              : "hides its place on the PCI tree");
  }
  if (path.pci == PathClass::unknown) return "the way up to the host bridge is hidden";
  if (topology.flattened()) return "flattened by the virtual machine: PCI classes say nothing";
  if (!path.certain) return "the file does not tell host bridges apart: at best this";
  if (topology.hides_switches() && (path.pci == PathClass::phb || path.pci == PathClass::node)) {
    return "no PCIe switch is shown: one NUMA node is all that is known";
  }
  if (path.nvlinks == 0 && path.near < path.pci)
    return fmt::format("the bytes see {}", to_string(path.near));
  if (path.pci == PathClass::sys &&
      (topology.numa_of(node_a) < 0 || topology.numa_of(node_b) < 0)) {
    return "no NUMA node is known";
  }
  if (path.same_package) return "another NUMA node of the same package";
  return {};
}

}  // namespace

Path path(const Topology& topology, DeviceId a, DeviceId b) {
  Path path;
  if (a == b) {
    path.smi = path.pci = path.near = PathClass::self;
    path.nccl = NcclClass::loc;
    return path;
  }
  const PciClass pci = classify(topology, topology.node(a), topology.node(b));
  path.pci = pci.path;
  path.certain = pci.certain;
  path.bridges = pci.bridges;
  path.smi = pci.path;
  path.near = effective(topology, a, b, pci.path);
  if (topology.is_gpu(a) && topology.is_gpu(b)) {
    path.nvlinks = topology.nvlinks_between(index(a), index(b));
    if (path.nvlinks > 0) path.smi = path.near = PathClass::nvlink;
    const auto& links = topology.nvlinks();
    path.xgmi = std::any_of(links.begin(), links.end(), [&](const NvLink& link) {
      return link.xgmi && link.gpu == index(a) && link.peer == index(b);
    });
  }
  path.same_package =
      path.pci == PathClass::sys && same_package(topology, topology.node(a), topology.node(b));
  nccl_class(topology, a, b, path);
  slowest_link(topology, a, b, path);
  path.nccl_reason = why_nccl_differs(topology, a, path);
  path.remark = remark(topology, a, b, path);
  return path;
}

Cost cost(const Topology& topology, const Path& path) {
  // NVL 1, PIX 2, PXB 3, P2C 4, PHB 5, NODE 6, SYS in one package 7, SYS 8, unknown 9.
  int rank = 9;
  switch (path.near) {
    case PathClass::self:
      rank = 0;
      break;
    case PathClass::nvlink:
      rank = 1;
      break;
    case PathClass::pix:
      rank = 2;
      break;
    case PathClass::pxb:
      rank = 3;
      break;
    case PathClass::phb:
      rank = 5;
      break;
    case PathClass::node:
      rank = 6;
      break;
    case PathClass::sys:
      rank = path.same_package ? 7 : 8;
      break;
    case PathClass::unknown:
      break;
  }
  if (path.nccl == NcclClass::p2c) rank = std::min(rank, 4);
  // Flat virtual buses make every class equal: only rates are left to compare.
  if (topology.flattened() && rank > 1) rank = 9;
  // Tenths of a GB/s, so that the rounding of two sources makes no difference.
  return {rank, -std::llround(10 * path.bottleneck.value_or(0)), path.bridges};
}

}  // namespace gdrx::topo
