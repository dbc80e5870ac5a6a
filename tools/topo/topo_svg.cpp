// SPDX-License-Identifier: Apache-2.0
// The picture: NUMA nodes as frames, host bridges and switches as bars over what hangs below them.
#include <fmt/format.h>

#include <algorithm>

#include "tools/topo/layout.hpp"
#include "tools/topo/topo_view.hpp"

namespace gdrx::tools {
namespace {

constexpr int kLeafWidth = 112;
constexpr int kLeafHeight = 44;
constexpr int kBarHeight = 26;
constexpr int kGap = 12;
constexpr int kRise = 26;  // between a bar and what is below it
constexpr int kMargin = 16;
constexpr int kMaxWidth = 1200;

struct Colours {
  const char* fill;
  const char* line;
};

Colours colours(PictureNode::Kind kind) {
  switch (kind) {
    case PictureNode::Kind::host_bridge:
      return {"#e8eaed", "#5f6368"};
    case PictureNode::Kind::pci_switch:
      return {"#fdf0d5", "#b26a00"};
    case PictureNode::Kind::gpu:
      return {"#dff3e0", "#2e7d32"};
    case PictureNode::Kind::nic:
      return {"#dcebfb", "#1a5fb4"};
  }
  return {"#ffffff", "#000000"};
}

bool is_leaf(const PictureNode& node) {
  return node.kind == PictureNode::Kind::gpu || node.kind == PictureNode::Kind::nic;
}

int width_of(const std::vector<PictureNode>& nodes);

int width_of(const PictureNode& node) {
  return is_leaf(node) ? kLeafWidth : std::max(kLeafWidth * 3 / 2, width_of(node.children));
}

int width_of(const std::vector<PictureNode>& nodes) {
  int width = 0;
  for (const PictureNode& node : nodes) width += width_of(node) + (width > 0 ? kGap : 0);
  return width;
}

int height_of(const PictureNode& node) {
  if (is_leaf(node)) return kLeafHeight;
  int below = 0;
  for (const PictureNode& child : node.children) below = std::max(below, height_of(child));
  return kBarHeight + (below > 0 ? kRise + below : 0);
}

int height_of(const PictureGroup& group) {
  int tallest = 0;
  for (const PictureNode& root : group.roots) tallest = std::max(tallest, height_of(root));
  return tallest + 3 * kMargin;
}

class Painter {
 public:
  explicit Painter(const topo::Topology& topology) : topology_(topology) {}

  std::string paint() {
    const std::vector<PictureGroup> groups = picture(topology_);
    const std::string links = nvlink_summary(topology_);
    int widest = 388;
    for (const PictureGroup& group : groups) {
      widest = std::max(widest, width_of(group.roots) + 2 * kMargin);
    }
    // Narrow frames stand side by side.
    const int across = groups.size() > 1 && 2 * widest <= kMaxWidth ? 2 : 1;
    const int width = across * widest + (across - 1) * kGap + 2 * kMargin;
    int y = kMargin;
    if (!links.empty()) {
      box(kMargin, y, width - 2 * kMargin, kBarHeight, {"#c8e6c9", "#2e7d32"});
      text(width / 2, y + 17, 13, links);
      y += kBarHeight + kGap;
    }
    for (std::size_t i = 0; i < groups.size(); i += static_cast<std::size_t>(across)) {
      const std::size_t end = std::min(groups.size(), i + static_cast<std::size_t>(across));
      int tallest = 0;
      for (std::size_t j = i; j < end; ++j) tallest = std::max(tallest, height_of(groups[j]));
      for (std::size_t j = i; j < end; ++j) {
        const int x = kMargin + static_cast<int>(j - i) * (widest + kGap);
        paint_group(groups[j], x, y, widest, tallest);
      }
      y += tallest + kGap;
    }
    if (topology_.devices() == 0) text(width / 2, y + 20, 13, "no GPU and no RDMA NIC");
    if (topology_.flattened()) {
      text(width / 2, y + 18, 12, "flattened by a virtual machine: not the hardware's tree");
      y += 24;
    }
    const int height = std::max(y, 60) + kMargin;
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" role=\"img\" font-family=\"system-ui, sans-serif\">\n"
        "<title>{2}</title>\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{3}</svg>\n",
        width, height, escaped("topology of " + topology_.source()), body_);
  }

 private:
  void paint_group(const PictureGroup& group, int x, int y, int width, int height) {
    box(x, y, width, height, {"#fafafa", "#bdc1c6"});
    const std::string cpus = topology_.cpus_of(group.numa);
    const std::string name =
        group.numa < 0 ? "NUMA node not known" : fmt::format("NUMA node {}", group.numa);
    body_ +=
        fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"12\" fill=\"#3c4043\">{}</text>\n", x + 10,
                    y + 18, escaped(name + (cpus.empty() ? "" : ", CPUs " + cpus.substr(0, 60))));
    int at = x + (width - width_of(group.roots)) / 2;
    for (const PictureNode& root : group.roots) {
      paint_node(root, at, y + 2 * kMargin);
      at += width_of(root) + kGap;
    }
  }

  void paint_node(const PictureNode& node, int x, int y) {
    const int width = width_of(node);
    if (is_leaf(node)) {
      box(x, y, width, kLeafHeight, colours(node.kind));
      text(x + width / 2, y + (node.detail.empty() ? 27 : 18), 13, shortened(node.title, 16));
      text(x + width / 2, y + 34, 10, shortened(node.detail, 20));
      return;
    }
    box(x, y, width, kBarHeight, colours(node.kind));
    text(x + width / 2, y + 17, 12, fmt::format("{} {}", node.title, node.detail));
    int at = x + (width - width_of(node.children)) / 2;
    const int below = y + kBarHeight + kRise;
    for (const PictureNode& child : node.children) {
      const int middle = at + width_of(child) / 2;
      body_ += fmt::format(
          "<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\" stroke=\"#80868b\" "
          "stroke-width=\"2\"/>\n",
          middle, y + kBarHeight, below);
      rate(child, middle, y + kBarHeight + 17);
      paint_node(child, at, below);
      at += width_of(child) + kGap;
    }
  }

  void rate(const PictureNode& node, int x, int y) {
    const auto speed = gbytes(topology_.nodes()[node.node].link);
    if (!speed || !is_leaf(node)) return;
    body_ += fmt::format(
        "<text x=\"{}\" y=\"{}\" font-size=\"10\" fill=\"#5f6368\">{:.1f} GB/s"
        "</text>\n",
        x + 5, y, *speed);
  }

  void box(int x, int y, int width, int height, Colours colours) {
    body_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"{}\" stroke=\"{}\"/>\n",
        x, y, width, height, colours.fill, colours.line);
  }

  void text(int x, int y, int size, std::string_view words) {
    body_ += fmt::format(
        "<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"middle\" fill=\"#202124\">{}"
        "</text>\n",
        x, y, size, escaped(words));
  }

  static std::string shortened(const std::string& words, std::size_t most) {
    return words.size() <= most ? words : words.substr(0, most - 2) + "..";
  }

  const topo::Topology& topology_;
  std::string body_;
};

}  // namespace

std::string topo_svg(const topo::Topology& topology) { return Painter(topology).paint(); }

}  // namespace gdrx::tools
