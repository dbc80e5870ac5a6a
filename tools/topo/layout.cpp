// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/layout.hpp"

#include <fmt/format.h>

#include <map>

#include "tools/topo/topo_view.hpp"

namespace gdrx::tools {
namespace {

using topo::kNone;
using topo::NodeKind;
using topo::Topology;

class Builder {
 public:
  explicit Builder(const Topology& topology)
      : topology_(topology), children_(topology.nodes().size()), map_(rail_map(topology)) {
    std::vector<char> wanted(topology.nodes().size(), 0);
    for (std::size_t i = 0; i < topology.devices(); ++i) {
      for (std::size_t at = topology.node(topo::DeviceId(i)); at != kNone && wanted[at] == 0;
           at = topology.nodes()[at].parent) {
        wanted[at] = 1;
        const std::size_t parent = topology.nodes()[at].parent;
        if (parent != kNone) children_[parent].push_back(at);
      }
    }
    for (std::size_t at = 0; at < wanted.size(); ++at) {
      if (wanted[at] != 0 && topology.nodes()[at].parent == kNone) tops_.push_back(at);
    }
  }

  std::vector<PictureGroup> build() {
    std::map<int, PictureGroup> groups;
    for (const std::size_t top : tops_) {
      const int numa = numa_below(top);
      auto nodes = visit(top);
      auto& roots = groups[numa].roots;
      roots.insert(roots.end(), nodes.begin(), nodes.end());
    }
    std::vector<PictureGroup> all;
    for (auto& [numa, group] : groups) {
      if (numa >= 0) all.push_back({numa, std::move(group.roots)});
    }
    PictureGroup last;
    if (groups.contains(-1)) last.roots = std::move(groups[-1].roots);
    for (auto& node : devices_at(kNone)) last.roots.push_back(std::move(node));
    if (!last.roots.empty()) all.push_back(std::move(last));
    return all;
  }

 private:
  // sysfs gives NUMA nodes to devices, not to host bridges.
  int numa_below(std::size_t at) const {
    const int own = topology_.nodes()[at].numa;
    for (std::size_t i = 0; own < 0 && i < children_[at].size(); ++i) {
      const int below = numa_below(children_[at][i]);
      if (below >= 0) return below;
    }
    return own;
  }

  std::vector<PictureNode> visit(std::size_t at) {
    std::vector<PictureNode> found = devices_at(at);
    for (const std::size_t child : children_[at]) {
      for (auto& node : visit(child)) found.push_back(std::move(node));
    }
    const topo::PciNode& node = topology_.nodes()[at];
    const bool forks = children_[at].size() > 1 || node.kind == NodeKind::pci_switch;
    if (node.kind == NodeKind::root) return {box(PictureNode::Kind::host_bridge, at, found)};
    if (node.kind != NodeKind::device && forks) {
      return {box(PictureNode::Kind::pci_switch, at, found)};
    }
    return found;
  }

  PictureNode box(PictureNode::Kind kind, std::size_t at, std::vector<PictureNode> children) const {
    const topo::PciNode& node = topology_.nodes()[at];
    PictureNode made;
    made.kind = kind;
    made.node = at;
    made.title = kind == PictureNode::Kind::pci_switch ? "PCIe switch"
                 : node.exact                          ? "host bridge"
                                                       : "CPU";
    made.detail = node.name;
    made.children = std::move(children);
    return made;
  }

  std::vector<PictureNode> devices_at(std::size_t at) const {
    std::vector<PictureNode> found;
    for (std::size_t i = 0; i < topology_.devices(); ++i) {
      if (topology_.node(topo::DeviceId(i)) != at) continue;
      PictureNode made;
      const bool gpu = topology_.is_gpu(topo::DeviceId(i));
      made.kind = gpu ? PictureNode::Kind::gpu : PictureNode::Kind::nic;
      made.node = at;
      made.title = topology_.name(topo::DeviceId(i));
      if (gpu) {
        for (const topo::RailChoice& choice : map_.of_gpu[i]) {
          made.detail += fmt::format("{}{}", made.detail.empty() ? "uses " : ", ",
                                     topology_.nics()[choice.nic].name);
        }
      }
      if (made.detail.empty() && at != kNone && topology_.nodes()[at].name != made.title) {
        made.detail = topology_.nodes()[at].name;
      }
      found.push_back(std::move(made));
    }
    return found;
  }

  const Topology& topology_;
  std::vector<std::vector<std::size_t>> children_;
  std::vector<std::size_t> tops_;
  topo::RailMap map_;
};

}  // namespace

std::vector<PictureGroup> picture(const Topology& topology) { return Builder(topology).build(); }

std::string nvlink_summary(const Topology& topology) {
  std::map<int, int> pairs;  // links: pairs
  const std::size_t gpus = topology.gpus().size();
  for (std::size_t a = 0; a < gpus; ++a) {
    for (std::size_t b = a + 1; b < gpus; ++b) ++pairs[topology.nvlinks_between(a, b)];
  }
  if (pairs.empty() || (pairs.size() == 1 && pairs.begin()->first == 0)) return {};
  if (pairs.size() == 1) return fmt::format("NVLink: NV{} between all GPUs", pairs.begin()->first);
  std::string text = "NVLink:";
  for (const auto& [links, count] : pairs) {
    if (links > 0) text += fmt::format(" NV{} between {} pairs,", links, count);
  }
  return text + fmt::format(" none between {}", pairs[0]);
}

}  // namespace gdrx::tools
