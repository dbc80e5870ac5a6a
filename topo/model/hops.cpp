// SPDX-License-Identifier: Apache-2.0
// A path told hop by hop.
#include <fmt/format.h>

#include <algorithm>

#include "topo/model/chain.hpp"
#include "topo/model/pci_vendor.hpp"

namespace gdrx::topo {
namespace {

// What bridge `at` of a chain is: below a host bridge come a root port, then switches, each with an
// upstream and a downstream port.
std::string bridge_word(const Topology& topology, const Chain& chain, std::size_t at) {
  const PciNode& node = topology.nodes()[chain.bridges[at].node];
  const bool in_nic = node.vendor == vendor::kMellanox;
  std::string_view role = "PCI bridge";
  if (node.kind == NodeKind::pci_switch) {
    role = "PCIe switch";
  } else if (at == 0) {
    role = "root port";
  } else if (at % 2 == 0) {
    role = "switch's downstream port";
  } else if (at + 1 < chain.bridges.size()) {
    role = "switch's upstream port";
  }
  return fmt::format("{} {}{}", role, node.name, in_nic ? ", inside the NIC" : "");
}

std::string device_word(const Topology& topology, DeviceId id) {
  const std::size_t node = topology.node(id);
  return fmt::format("{} ({})", topology.name(id),
                     node == kNone ? "place not known" : topology.nodes()[node].name);
}

std::optional<double> slower(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// From the device up: its links, without the bridges above `common`.
std::vector<Hop> climb(const Topology& topology, DeviceId id, const Chain& chain,
                       std::size_t common) {
  const auto& nodes = topology.nodes();
  std::vector<Hop> up{{device_word(topology, id), gbytes(nodes[topology.node(id)].link)}};
  for (std::size_t i = chain.bridges.size(); i-- > common;) {
    const Port& port = chain.bridges[i];
    const PciNode& node = nodes[port.node];
    if (port.below != kNone) continue;  // told by its switch
    // The first bridge above a device is a downstream or a root port, the next an upstream port,
    // and so on: from a downstream port the way goes on inside the chip, with no link.
    const bool inside = (chain.bridges.size() - i) % 2 == 1;
    // The port's own figure is of the link below it, which the device told of already.
    if (inside) up.back().gbytes = slower(up.back().gbytes, gbytes(node.link));
    up.push_back({bridge_word(topology, chain, i), inside ? std::nullopt : gbytes(node.link)});
  }
  return up;
}

// sysfs tells NUMA nodes of devices, not of host bridges.
int numa_at(const Topology& topology, std::size_t device) {
  return topology.numa_with_cpus(topology.numa_of(device));
}

std::string root_word(const Topology& topology, std::size_t root, std::size_t device) {
  const PciNode& node = topology.nodes()[root];
  const int numa = numa_at(topology, device);
  return fmt::format("{} {}{}", node.exact ? "host bridge" : "CPU", node.name,
                     numa < 0 ? ", NUMA node not known" : fmt::format(", NUMA node {}", numa));
}

std::string between(const Topology& topology, std::size_t a, std::size_t b) {
  const int numa_a = numa_at(topology, a);
  const int numa_b = numa_at(topology, b);
  if (numa_a < 0 || numa_b < 0) return "the CPU's fabric or between CPUs: not known which";
  if (numa_a == numa_b) return "the CPU's fabric, in one NUMA node";
  const int package = topology.package_of(numa_a);
  return package >= 0 && package == topology.package_of(numa_b)
             ? "between NUMA nodes of one package (speed not known)"
             : "between NUMA nodes (speed not known)";
}

void append_reversed(std::vector<Hop>& to, const std::vector<Hop>& up) {
  for (std::size_t i = up.size(); i-- > 0;) {
    // A link's rate belongs to the hop that it is left from.
    to.back().gbytes = up[i].gbytes;
    to.push_back({up[i].what, std::nullopt});
  }
}

}  // namespace

std::vector<Hop> hops(const Topology& topology, DeviceId a, DeviceId b) {
  const std::size_t node_a = topology.node(a);
  const std::size_t node_b = topology.node(b);
  const auto unknown = [&](const std::string& why) {
    return std::vector<Hop>{{device_word(topology, a), std::nullopt},
                            {why, std::nullopt},
                            {device_word(topology, b), std::nullopt}};
  };
  if (a == b) return {{device_word(topology, a), std::nullopt}};
  if (node_a == kNone || node_b == kNone) return unknown("not known");
  if (node_a == node_b) return unknown("one PCI function: two ports of a card");
  const Chain above_a = chain_above(topology, node_a);
  const Chain above_b = chain_above(topology, node_b);
  if (above_a.root == kNone || above_b.root == kNone) return unknown("not known: sysfs is hidden");
  const bool one_root = above_a.root == above_b.root;
  const std::size_t common = one_root ? common_bridges(above_a, above_b) : 0;
  std::vector<Hop> way = climb(topology, a, above_a, common);
  if (common > 0) {
    // What the meeting point is, shows by what goes on below it.
    const bool a_longer = above_a.bridges.size() > above_b.bridges.size();
    const Chain& longer = a_longer ? above_a : above_b;
    way.push_back({bridge_word(topology, longer, common - 1), std::nullopt});
  } else {
    way.push_back({root_word(topology, above_a.root, node_a), std::nullopt});
    if (!one_root) {
      way.push_back({between(topology, node_a, node_b), std::nullopt});
      way.push_back({root_word(topology, above_b.root, node_b), std::nullopt});
    }
  }
  append_reversed(way, climb(topology, b, above_b, common));
  return way;
}

}  // namespace gdrx::topo
