// SPDX-License-Identifier: Apache-2.0
// Hosts for tests: a tree is written down bridge by bridge.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "gdrx/topology.hpp"

namespace gdrx::topo::test {

inline constexpr Link kGen4x16{16, 16, 0};

class HostBuilder {
 public:
  HostBuilder() { parts.source = "a test"; }
  std::size_t root(int numa) {
    PciNode node;
    node.kind = NodeKind::root;
    node.name = fmt::format("pci{:04x}:00", domain_++);
    node.numa = numa;
    bus_ = 0;
    return add(node);
  }
  std::size_t bridge(std::size_t above, std::uint16_t vendor = 0x1000) {
    PciNode node = pci(above, vendor, 0x060400);
    node.kind = NodeKind::bridge;
    node.link = kGen4x16;
    return add(node);
  }
  /// Root port and the upstream port of a switch.
  std::size_t switch_below(std::size_t root) { return bridge(bridge(root)); }
  /// A downstream port of a switch, with a GPU or NIC behind it.
  std::size_t gpu_on(std::size_t upstream) { return gpu(bridge(upstream)); }
  std::size_t nic_on(std::size_t upstream, std::string name) {
    return nic(bridge(upstream), std::move(name));
  }
  std::size_t gpu(std::size_t above) {
    PciNode node = pci(above, 0x10de, 0x030200);
    node.link = kGen4x16;
    const std::size_t at = add(node);
    parts.gpus.push_back({{}, at, "H200", 90, 0, 0});
    return at;
  }
  std::size_t nic(std::size_t above, std::string name, double gigabits = 0) {
    PciNode node = pci(above, 0x15b3, 0x020700);
    node.link = kGen4x16;
    const std::size_t at = add(node);
    parts.nics.push_back({std::move(name), at, kNone, 1, gigabits, "InfiniBand", false});
    return at;
  }
  std::size_t add(PciNode node) {
    parts.nodes.push_back(std::move(node));
    return parts.nodes.size() - 1;
  }
  Topology build() {
    auto made = Topology::make(parts);
    EXPECT_TRUE(made) << made.error().what;
    return made ? *made : Topology();
  }

  Parts parts;

 private:
  PciNode pci(std::size_t above, std::uint16_t vendor, std::uint32_t class_code) {
    PciNode node;
    node.parent = above;
    node.bus = BusId{domain_ - 1, static_cast<std::uint8_t>(bus_++), 0, 0};
    node.name = to_string(*node.bus);
    node.vendor = vendor;
    node.class_code = class_code;
    return node;
  }
  std::uint32_t domain_ = 0;
  unsigned bus_ = 0;
};

inline std::string smi(const Topology& topology, std::string_view a, std::string_view b,
                       bool pci_only = false) {
  const auto x = topology.find(a);
  const auto y = topology.find(b);
  if (!x || !y) return "no such device";
  return cell(path(topology, *x, *y), pci_only);
}

inline Path way(const Topology& topology, std::string_view a, std::string_view b) {
  return path(topology, *topology.find(a), *topology.find(b));
}

inline std::string read_text(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace gdrx::topo::test
