// SPDX-License-Identifier: Apache-2.0
#include "topo/model/chain.hpp"

#include <algorithm>

#include "topo/model/pci_vendor.hpp"

namespace gdrx::topo {
namespace {

// Gen4 (c010, subsystem 1000:a0xx) and Gen5 (c030, subsystem 1000:0xxx or 1xxx) parts that present
// one chip as two levels of switches. From NCCL's rule, as documented in the topology notes.
bool is_two_level_part(const PciNode& node) {
  if (node.vendor != vendor::kBroadcom || node.subsystem_vendor != vendor::kBroadcom) return false;
  if (node.device == 0xc010) return (node.subsystem_device & 0xff00) == 0xa000;
  if (node.device == 0xc030) return (node.subsystem_device & 0xf000) <= 0x1000;
  return false;
}

// NCCL takes a chain for ended where a bus id is not exactly twelve characters long.
bool nccl_reads(const PciNode& node) { return !node.bus || node.bus->domain <= 0xffff; }

}  // namespace

Chain chain_above(const Topology& topology, std::size_t node) {
  Chain chain;
  if (node == kNone) return chain;
  const auto& nodes = topology.nodes();
  std::size_t below = node;
  for (std::size_t up = nodes[node].parent; up != kNone; up = nodes[up].parent) {
    switch (nodes[up].kind) {
      case NodeKind::root:
        chain.root = up;
        break;
      case NodeKind::pci_switch:
        chain.bridges.push_back({up, below});
        chain.bridges.push_back({up, kNone});
        break;
      case NodeKind::bridge:
      case NodeKind::device:
        chain.bridges.push_back({up, kNone});
        break;
    }
    below = up;
  }
  std::reverse(chain.bridges.begin(), chain.bridges.end());
  return chain;
}

std::size_t common_bridges(const Chain& a, const Chain& b) {
  const auto [end, ignored] =
      std::mismatch(a.bridges.begin(), a.bridges.end(), b.bridges.begin(), b.bridges.end());
  return static_cast<std::size_t>(end - a.bridges.begin());
}

Chain without_own_bridges(const Topology& topology, std::size_t node, Chain chain) {
  const auto& nodes = topology.nodes();
  // Not every source tells vendors.
  const std::uint16_t maker = nodes[node].vendor == 0 ? vendor::kMellanox : nodes[node].vendor;
  if (maker != vendor::kMellanox && maker != vendor::kAmdGraphics) return chain;
  while (!chain.bridges.empty() && nodes[chain.bridges.back().node].vendor == maker) {
    chain.bridges.pop_back();
  }
  return chain;
}

std::vector<std::size_t> nccl_switches(const Topology& topology, const Chain& chain) {
  const auto& nodes = topology.nodes();
  std::vector<std::size_t> up;  // nearest first
  for (std::size_t left = chain.bridges.size(); left >= 2; left -= 2) {
    const PciNode& lower = nodes[chain.bridges[left - 1].node];
    const std::size_t at = chain.bridges[left - 2].node;
    if (!nccl_reads(lower) || !nccl_reads(nodes[at])) break;
    up.push_back(at);
  }
  for (std::size_t i = 0; i + 1 < up.size();) {
    const PciNode& lower = nodes[up[i]];
    const PciNode& upper = nodes[up[i + 1]];
    const bool fused =
        is_two_level_part(lower) && is_two_level_part(upper) && lower.device == upper.device;
    if (fused) {
      up.erase(up.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return up;
}

NcclClass nccl_pci_class(const Topology& topology, std::size_t a, std::size_t b) {
  const Chain above_a = chain_above(topology, a);
  const Chain above_b = chain_above(topology, b);
  if (above_a.root == kNone || above_b.root == kNone) return NcclClass::unknown;
  const auto up_a = nccl_switches(topology, above_a);
  const auto up_b = nccl_switches(topology, above_b);
  for (std::size_t i = 0; i < up_a.size(); ++i) {
    const auto met = std::find(up_b.begin(), up_b.end(), up_a[i]);
    if (met == up_b.end()) continue;
    return i == 0 && met == up_b.begin() ? NcclClass::pix : NcclClass::pxb;
  }
  // Without a NUMA node NCCL puts both on its CPU "-1".
  return topology.numa_of(a) == topology.numa_of(b) ? NcclClass::phb : NcclClass::sys;
}

}  // namespace gdrx::topo
