// SPDX-License-Identifier: Apache-2.0
// The topology as other programs' settings: NCCL's file, shell variables.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/cpu_list.hpp"
#include "doctor/shell.hpp"
#include "tools/topo/topo_view.hpp"

namespace gdrx::tools {
namespace {

using topo::kNone;
using topo::NodeKind;
using topo::PciNode;
using topo::Topology;

std::string hex(std::uint32_t value, int digits) { return fmt::format("0x{:0{}x}", value, digits); }

// NCCL knows whole switches, by their upstream ports: of a chain of bridges above a device, every
// second one upward. A folded switch is one already.
class NcclWriter {
 public:
  explicit NcclWriter(const Topology& topology) : topology_(topology) {
    for (std::size_t i = 0; i < topology.devices(); ++i) {
      const std::size_t node = topology.node(topo::DeviceId(i));
      if (node != kNone && !placed_.contains(node)) place(node);
    }
  }

  std::string write() {
    text_ = "<system version=\"1\">\n";
    std::map<int, std::vector<std::size_t>> by_numa;
    for (const auto& [node, parent] : placed_) {
      if (parent == kNone) by_numa[topology_.numa_of(node)].push_back(node);
    }
    for (const auto& [numa, nodes] : by_numa) {
      text_ += fmt::format("  <cpu numaid=\"{}\"{}>\n", numa, affinity(numa));
      for (const std::size_t node : nodes) element(node, 4);
      text_ += "  </cpu>\n";
    }
    return text_ + "</system>\n";
  }

 private:
  void place(std::size_t node) {
    const std::size_t parent = switch_above(node);
    placed_[node] = parent;
    if (parent != kNone && !placed_.contains(parent)) place(parent);
  }

  std::size_t switch_above(std::size_t node) const {
    const auto& nodes = topology_.nodes();
    const std::size_t up = nodes[node].parent;
    if (up == kNone || nodes[up].kind == NodeKind::root) return kNone;
    if (nodes[up].kind == NodeKind::pci_switch) return up;
    const std::size_t next = nodes[up].parent;
    return next == kNone || nodes[next].kind == NodeKind::root ? kNone : next;
  }

  // "0-3,8" as NCCL's mask of 32-bit words.
  std::string affinity(int numa) const {
    std::vector<std::uint32_t> words;
    for (const int listed : cpus_of_list(topology_.cpus_of(numa))) {
      const auto cpu = static_cast<unsigned>(listed);
      words.resize(std::max<std::size_t>(words.size(), cpu / 32 + 1));
      words[cpu / 32] |= 1u << cpu % 32;
    }
    std::string mask;
    for (std::size_t i = words.size(); i-- > 0;) {
      mask += fmt::format("{:08x}{}", words[i], i == 0 ? "" : ",");
    }
    return mask.empty() ? mask : fmt::format(" affinity=\"{}\"", mask);
  }

  void element(std::size_t at, int indent) {
    const PciNode& node = topology_.nodes()[at];
    const std::string space(static_cast<std::size_t>(indent), ' ');
    const bool bridge = node.kind != NodeKind::device;
    text_ += fmt::format("{}<pci busid=\"{}\" class=\"{}\"", space, node.name,
                         hex(bridge ? 0x060400 : node.class_code, 6));
    if (node.vendor != 0) {
      text_ += fmt::format(
          " vendor=\"{}\" device=\"{}\" subsystem_vendor=\"{}\" subsystem_device=\"{}\"",
          hex(node.vendor, 4), hex(node.device, 4), hex(node.subsystem_vendor, 4),
          hex(node.subsystem_device, 4));
    }
    text_ += speed(node);
    std::string inside;
    std::swap(inside, text_);
    for (const auto& [child, parent] : placed_) {
      if (parent == at) element(child, indent + 2);
    }
    devices(at, space);
    std::swap(inside, text_);
    text_ += inside.empty() ? "/>\n" : fmt::format(">\n{}{}</pci>\n", inside, space);
  }

  // What only the product of rate and lanes is known of becomes the Gen4 link of that speed.
  static std::string speed(const PciNode& node) {
    topo::Link link = node.link;
    if (link.gigatransfers <= 0 && link.total > 0) {
      link.gigatransfers = link.total > 16 ? 16 : 8;
      link.width = static_cast<int>(link.total / (link.gigatransfers * 128 / 130 / 8) + 0.5);
    }
    if (link.gigatransfers <= 0) return {};
    return fmt::format(" link_speed=\"{:.1f} GT/s PCIe\" link_width=\"{}\"", link.gigatransfers,
                       link.width);
  }

  // NCCL fills in <gpu> and <net> by itself: a file for it says where, not what.
  void devices(std::size_t at, const std::string& space) {
    std::string nets;
    for (const topo::Nic& nic : topology_.nics()) {
      if (nic.node != at || nic.name == topology_.nodes()[at].name) continue;
      nets += fmt::format("{}    <net name=\"{}\" port=\"{}\"", space, escaped(nic.name), nic.port);
      if (nic.gigabits > 0) nets += fmt::format(" speed=\"{:.0f}\"", nic.gigabits * 1000);
      nets += "/>\n";
    }
    if (!nets.empty()) text_ += fmt::format("{0}  <nic>\n{1}{0}  </nic>\n", space, nets);
  }

  const Topology& topology_;
  std::map<std::size_t, std::size_t> placed_;  // node: the switch above it in NCCL's tree
  std::string text_;
};

std::string joined(const Topology& topology, const std::vector<topo::RailChoice>& choices,
                   std::string_view suffix) {
  std::string text;
  for (const topo::RailChoice& choice : choices) {
    const topo::Nic& nic = topology.nics()[choice.nic];
    const int port = std::max(1, nic.port);
    text += fmt::format("{}{}{}", text.empty() ? "" : ",", nic.name,
                        fmt::format(fmt::runtime(suffix), port));
  }
  return text;
}

}  // namespace

std::string nccl_xml(const Topology& topology) { return NcclWriter(topology).write(); }

std::string nccl_hca(const Topology& topology, const std::vector<std::size_t>& nics) {
  std::string text;
  for (const std::size_t at : nics) {
    const topo::Nic& nic = topology.nics()[at];
    text += (text.empty() ? "=" : ",") + nic.name;
    if (nic.port > 0) text += fmt::format(":{}", nic.port);
  }
  return text;
}

std::string env_lines(const Topology& topology) {
  const topo::RailMap map = rail_map(topology);
  std::vector<topo::RailChoice> used;
  std::vector<std::size_t> nics;
  for (std::size_t nic = 0; nic < map.load.size(); ++nic) {
    if (map.load[nic] == 0) continue;
    used.push_back({nic, {}, {}, {}});
    nics.push_back(nic);
  }
  if (used.empty()) return "# no NIC is used by any GPU: nothing to set\n";
  for (const topo::RailChoice& choice : used) {
    const topo::Nic& nic = topology.nics()[choice.nic];
    if (topo::parse_bus_id(nic.name))
      return "# this source does not name its NICs: nothing to set\n";
    if (!doctor::is_plain_name(nic.name))
      return "# a NIC's name is no plain word: nothing to set\n";
  }
  std::string text = "# NCCL: '=' takes the names as they are, mlx5_1 is not mlx5_10\n";
  text += fmt::format("export NCCL_IB_HCA={}\n", nccl_hca(topology, nics));
  text += "# UCX, by the rank's number on its host\n";
  text += "case \"${OMPI_COMM_WORLD_LOCAL_RANK:-${SLURM_LOCALID:-${LOCAL_RANK:-}}}\" in\n";
  for (std::size_t gpu = 0; gpu < map.of_gpu.size(); ++gpu) {
    text += fmt::format("  {}) export UCX_NET_DEVICES={} ;;\n", gpu,
                        joined(topology, map.of_gpu[gpu], ":{}"));
  }
  return text + "esac\n";
}

}  // namespace gdrx::tools
