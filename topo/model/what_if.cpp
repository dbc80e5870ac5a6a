// SPDX-License-Identifier: Apache-2.0
// Another slot for a card: the same parts, one of them elsewhere.
#include <fmt/format.h>

#include <sstream>

#include "gdrx/topology.hpp"

namespace gdrx::topo {
namespace {

constexpr std::string_view kSay =
    "say 'move mlx5_1 under switch 0000:3b:00.0' or 'move mlx5_1 beside GPU3'";

Result<std::size_t> bridge_named(const Topology& topology, const std::string& name) {
  const auto bus = parse_bus_id(name);
  for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
    const PciNode& node = topology.nodes()[i];
    if (node.name != name && (!bus || node.bus != bus)) continue;
    if (node.kind != NodeKind::device) return i;
    return fail(Errc::invalid_argument, fmt::format("{} is no bridge; {}", name, kSay));
  }
  return fail(Errc::invalid_argument, fmt::format("no bridge '{}'; {}", name, kSay));
}

}  // namespace

Result<Topology> what_if(const Topology& topology, std::string_view sentence) {
  std::istringstream words{std::string(sentence)};
  std::string verb;
  std::string moved;
  std::string where;
  std::string target;
  std::string more;
  words >> verb >> moved >> where >> target;
  if (target == "switch" || target == "bridge") words >> target;
  const bool under = where == "under" || where == "below";
  if (verb != "move" || (!under && where != "beside") || target.empty() || (words >> more)) {
    return fail(Errc::invalid_argument,
                fmt::format("'{}' is not understood; {}", sentence.substr(0, 80), kSay));
  }
  const DeviceId device = GDRX_TRY(topology.find(moved));
  const std::size_t node = topology.node(device);
  if (node == kNone) {
    return fail(Errc::invalid_argument, fmt::format("{} has no place on the PCI tree", moved));
  }
  std::size_t parent = kNone;
  if (under) {
    parent = GDRX_TRY(bridge_named(topology, target));
  } else {
    const std::size_t beside = topology.node(GDRX_TRY(topology.find(target)));
    if (beside != kNone) parent = topology.nodes()[beside].parent;
  }
  if (parent == kNone) {
    return fail(Errc::invalid_argument, fmt::format("where {} sits is not known", target));
  }
  Parts parts = topology.parts();
  // Beside a device in its own slot: the slot's port is a switch's, and the new card gets another.
  const PciNode& port = parts.nodes[parent];
  const bool leaf_port = port.kind == NodeKind::bridge && port.parent != kNone &&
                         parts.nodes[port.parent].kind == NodeKind::bridge;
  if (!under && leaf_port) parent = port.parent;
  parts.nodes[node].parent = parent;
  parts.nodes[node].numa = -1;  // from above, now
  parts.source += fmt::format(", what if: {}", sentence);
  for (NvLink& link : parts.nvlinks) {
    link.gpu = parts.gpus[link.gpu].node;
    if (link.peer != kNone) link.peer = parts.gpus[link.peer].node;
  }
  return Topology::make(std::move(parts));
}

}  // namespace gdrx::topo
