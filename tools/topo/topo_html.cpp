// SPDX-License-Identifier: Apache-2.0
// One page: picture, matrix, map. And Graphviz, which shares the picture's tree.
#include <fmt/format.h>

#include "base/printable.hpp"
#include "tools/topo/layout.hpp"
#include "tools/topo/topo_view.hpp"

namespace gdrx::tools {
namespace {

using topo::DeviceId;
using topo::Path;
using topo::PathClass;
using topo::Topology;

// Light for near, dark for far; the word is in the cell, so colour is never the only sign.
std::string_view shade(const Path& way) {
  switch (way.smi) {
    case PathClass::self:
      return "#ffffff";
    case PathClass::nvlink:
      return "#b7e1cd";
    case PathClass::pix:
      return "#d9f0e1";
    case PathClass::pxb:
      return "#eaf5dc";
    case PathClass::phb:
      return "#fff4d1";
    case PathClass::node:
      return "#fde3cf";
    case PathClass::sys:
      return "#f9d0cb";
    case PathClass::unknown:
      return "#e8eaed";
  }
  return "#ffffff";
}

std::string matrix_html(const Topology& topology) {
  std::string text = "<div class=\"wide\"><table><tr><th></th>";
  for (std::size_t i = 0; i < topology.devices(); ++i) {
    // Columns by number, as nvidia-smi has them: names can be long.
    const std::string& name = topology.name(DeviceId(i));
    const std::size_t gpus = topology.gpus().size();
    text += fmt::format("<th title=\"{}\">{}</th>", escaped(name),
                        i < gpus ? name : nic_label(i - gpus));
  }
  text += "</tr>\n";
  for (std::size_t a = 0; a < topology.devices(); ++a) {
    const std::string number =
        topology.is_gpu(DeviceId(a)) ? std::string() : nic_label(a - topology.gpus().size()) + " ";
    text += fmt::format("<tr><th>{}{}</th>", number, escaped(topology.name(DeviceId(a))));
    for (std::size_t b = 0; b < topology.devices(); ++b) {
      const Path way = path(topology, DeviceId(a), DeviceId(b));
      const std::string tip =
          a == b
              ? std::string("itself")
              : fmt::format("{} by PCI; NCCL {}{}; slowest known link: {}{}{}", cell(way, true),
                            to_string(way.nccl),
                            way.nccl_reason.empty() ? "" : " (" + way.nccl_reason + ")",
                            rate_text(way.bottleneck), way.remark.empty() ? "" : "; ", way.remark);
      text += fmt::format("<td style=\"background:{}\" title=\"{}\">{}</td>", shade(way),
                          escaped(tip), cell(way, false));
    }
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

std::string map_html(const Topology& topology) {
  if (topology.gpus().empty() || topology.nics().empty()) return "<p>Nothing to map.</p>\n";
  std::string text =
      "<table><tr><th>GPU</th><th>NIC</th><th>class</th><th>slowest known link</th>"
      "<th>why</th><th>GPUDirect RDMA</th></tr>\n";
  const topo::RailMap map = rail_map(topology);
  for (std::size_t gpu = 0; gpu < map.of_gpu.size(); ++gpu) {
    for (const topo::RailChoice& choice : map.of_gpu[gpu]) {
      text += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"l\">{}</td>"
          "<td class=\"l\">{}</td></tr>\n",
          topology.gpus()[gpu].name, escaped(topology.nics()[choice.nic].name),
          cell(choice.path, true), rate_text(choice.path.bottleneck), escaped(choice.reason),
          escaped(choice.quality));
    }
  }
  return text + "</table>\n";
}

constexpr std::string_view kTopoStyle =
    "body{font:15px/1.5 system-ui,sans-serif;color:#202124;background:#fff;margin:2em auto;"
    "max-width:1200px;padding:0 1em}h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}"
    "table{border-collapse:collapse;font-size:13px}td,th{border:1px solid #dadce0;padding:3px 8px;"
    "text-align:center}td.l{text-align:left}.wide{overflow-x:auto}svg{max-width:100%;height:auto}";

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string topo_html(const Topology& topology) {
  std::string notes;
  for (const std::string& note : topology.notes()) {
    notes += fmt::format("<li>{}</li>\n", escaped(note));
  }
  const std::string title = escaped("Topology of " + topology.source());
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>{0}</title>\n"
      "<style>{1}</style></head><body>\n<h1>{0}</h1>\n<p>{2} GPUs, {3} RDMA NICs</p>\n{4}"
      "<h2>Paths</h2>\n{5}<h2>GPU to NIC</h2>\n{6}{7}</body></html>\n",
      title, kTopoStyle, topology.gpus().size(), topology.nics().size(), topo_svg(topology),
      matrix_html(topology), map_html(topology),
      notes.empty() ? "" : "<h2>Notes</h2>\n<ul>" + notes + "</ul>\n");
}

namespace {

std::string in_quotes(std::string_view text) {
  std::string safe = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe + '"';
}

void dot_node(const Topology& topology, const PictureNode& node, const std::string& parent,
              std::string& text, int& next) {
  constexpr std::string_view kFills[] = {"#e8eaed", "#fdf0d5", "#dff3e0", "#dcebfb"};
  const std::string id = fmt::format("n{}", next++);
  text += fmt::format("  {} [label={}, fillcolor=\"{}\"];\n", id,
                      in_quotes(node.title + " " + node.detail),
                      kFills[static_cast<std::size_t>(node.kind)]);
  if (!parent.empty()) {
    const auto speed =
        node.node == topo::kNone ? std::nullopt : gbytes(topology.nodes()[node.node].link);
    text += fmt::format("  {} -- {}{};\n", parent, id,
                        speed ? fmt::format(" [label=\"{:.1f} GB/s\"]", *speed) : "");
  }
  for (const PictureNode& child : node.children) dot_node(topology, child, id, text, next);
}

}  // namespace

std::string topo_dot(const Topology& topology) {
  std::string text =
      "graph topology {\n  rankdir=TB;\n  node [shape=box, style=\"rounded,filled\", "
      "fontname=\"sans-serif\"];\n";
  int next = 0;
  for (const PictureGroup& group : picture(topology)) {
    const std::string top = fmt::format("numa{}", group.numa < 0 ? next + 100000 : group.numa);
    text += fmt::format("  {} [label={}, fillcolor=\"#ffffff\"];\n", top,
                        in_quotes(group.numa < 0 ? "NUMA node not known"
                                                 : fmt::format("NUMA node {}", group.numa)));
    for (const PictureNode& root : group.roots) dot_node(topology, root, top, text, next);
  }
  return text + "}\n";
}

}  // namespace gdrx::tools
