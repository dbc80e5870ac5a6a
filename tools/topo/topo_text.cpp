// SPDX-License-Identifier: Apache-2.0
// The matrix and its legend.
#include <fmt/format.h>

#include <map>
#include <set>

#include "tools/topo/topo_table.hpp"
#include "tools/topo/topo_view.hpp"

namespace gdrx::tools {

using topo::DeviceId;
using topo::Path;
using topo::PathClass;
using topo::Topology;

std::string rate_text(const std::optional<double>& gbytes) {
  return gbytes ? fmt::format("{:.1f} GB/s", *gbytes) : "speed not known";
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string lines;
  std::size_t column = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (column > indent && column + 1 + word.size() > width) {
      lines += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
    at = end + 1;
  }
  return lines;
}

std::string nic_label(std::size_t nic) { return fmt::format("NIC{}", nic); }

namespace {

std::string label(const Topology& topology, std::size_t device) {
  const std::size_t gpus = topology.gpus().size();
  return device < gpus ? topology.gpus()[device].name : nic_label(device - gpus);
}

std::string bold(std::string_view text, bool colour) {
  return colour ? fmt::format("\033[1m{}\033[0m", text) : std::string(text);
}

std::string or_not_known(const std::string& text) { return text.empty() ? "N/A" : text; }

// Lines of a legend, for the classes that are there.
constexpr std::pair<PathClass, std::string_view> kLegend[] = {
    {PathClass::self, "X    = Self"},
    {PathClass::sys,
     "SYS  = Traverses PCIe and the link between NUMA nodes (UPI, Infinity Fabric)"},
    {PathClass::node, "NODE = Traverses PCIe and the link between host bridges of a NUMA node"},
    {PathClass::phb, "PHB  = Traverses PCIe and a host bridge (typically the CPU)"},
    {PathClass::pxb, "PXB  = Traverses several PCIe bridges, no host bridge"},
    {PathClass::pix, "PIX  = Traverses at most a single PCIe bridge"},
    {PathClass::nvlink, "NV#  = Traverses a bonded set of # NVLinks"},
    {PathClass::unknown, "UNK  = Not known: the source does not say"},
};

std::string nccl_section(const Topology& topology) {
  std::map<std::string, std::pair<std::string, int>> kinds;
  for (std::size_t a = 0; a < topology.devices(); ++a) {
    for (std::size_t b = a + 1; b < topology.devices(); ++b) {
      const Path way = path(topology, DeviceId(a), DeviceId(b));
      if (way.nccl_reason.empty()) continue;
      auto& kind = kinds[fmt::format("{} -> {}: {}", to_string(way.pci), to_string(way.nccl),
                                     way.nccl_reason)];
      if (kind.second++ == 0) {
        kind.first = fmt::format("{}-{}", label(topology, a), label(topology, b));
      }
    }
  }
  if (kinds.empty()) return {};
  std::string text = "\nWhere NCCL says something else (nvidia-smi -> NCCL):\n";
  for (const auto& [what, seen] : kinds) {
    text += fmt::format("  {}\n    {}{}\n", wrapped(what, 4), seen.first,
                        seen.second == 1 ? "" : fmt::format(" and {} pairs more", seen.second - 1));
  }
  return text;
}

std::string notes_section(const Topology& topology) {
  std::string text;
  if (topology.flattened()) {
    text += "  ! flattened by a virtual machine: PCI classes say nothing about the hardware\n";
  }
  if (topology.hides_switches()) {
    text += "  ! no PCIe switch is shown: PHB and NODE say no more than one NUMA node\n";
  }
  for (const std::string& note : topology.notes())
    text += fmt::format("  - {}\n", wrapped(note, 4));
  return text.empty() ? text : "\nNotes:\n" + text;
}

}  // namespace

std::string matrix_text(const Topology& topology, const TextStyle& style) {
  if (topology.devices() == 0) {
    return fmt::format("no GPU and no RDMA NIC in {}\n{}", topology.source(),
                       notes_section(topology));
  }
  const std::size_t gpus = topology.gpus().size();
  std::vector<std::string> header{""};
  for (std::size_t i = 0; i < topology.devices(); ++i) header.push_back(label(topology, i));
  header.insert(header.end(), {"CPU Affinity", "NUMA Affinity"});
  Table table(header);
  std::set<PathClass> seen;
  bool uncertain = false;
  bool xgmi = false;
  for (std::size_t a = 0; a < topology.devices(); ++a) {
    std::vector<std::string> row{label(topology, a)};
    for (std::size_t b = 0; b < topology.devices(); ++b) {
      const Path way = path(topology, DeviceId(a), DeviceId(b));
      seen.insert(style.pci_only ? way.pci : way.smi);
      row.push_back(cell(way, style.pci_only));
      xgmi |= way.xgmi && !style.pci_only;
      uncertain |= row.back().ends_with('?');
      if (a == b) row.back() = " X";
    }
    const int numa = topology.numa_near(topology.node(DeviceId(a)));
    if (a < gpus) {  // nvidia-smi gives GPUs an affinity, NICs none
      row.push_back(or_not_known(topology.cpus_near(topology.node(DeviceId(a)))));
      row.push_back(numa < 0 ? "N/A" : fmt::format("{}", numa));
    }
    table.add(std::move(row));
  }
  std::string text = table.print(style.columns);
  text += "\n" + bold("Legend:", style.colour) + "\n\n";
  for (const auto& [path_class, line] : kLegend) {
    if (seen.contains(path_class)) text += fmt::format("  {}\n", line);
  }
  if (xgmi) text += "  XGMI# = Traverses # links of AMD's Infinity Fabric\n";
  if (uncertain) text += "  ?    = At best: the file does not tell host bridges apart\n";
  if (!topology.nics().empty()) {
    text += "\n" + bold("NIC Legend:", style.colour) + "\n\n";
    for (std::size_t i = 0; i < topology.nics().size(); ++i) {
      text += fmt::format("  {}: {}\n", nic_label(i), topology.nics()[i].name);
    }
  }
  return text + nccl_section(topology) + notes_section(topology);
}

std::string map_text(const Topology& topology, const TextStyle& style) {
  if (topology.gpus().empty()) return fmt::format("no GPU in {}\n", topology.source());
  if (topology.nics().empty()) return fmt::format("no RDMA NIC in {}\n", topology.source());
  const topo::RailMap map = rail_map(topology);
  std::string text = bold("GPU    NIC          class slowest    why", style.colour) + "\n";
  for (std::size_t gpu = 0; gpu < map.of_gpu.size(); ++gpu) {
    for (const topo::RailChoice& choice : map.of_gpu[gpu]) {
      const Path& way = choice.path;
      constexpr std::size_t kIndent = 37;
      text += fmt::format("{:<6} {:<12} {:<5} {:<10} {}\n", topology.gpus()[gpu].name,
                          topology.nics()[choice.nic].name, cell(way, true),
                          way.bottleneck ? rate_text(way.bottleneck) : "not known",
                          wrapped(choice.reason, kIndent));
      text += fmt::format("{:37}{}\n", "", wrapped("GDR: " + choice.quality, kIndent));
    }
  }
  std::string unused;
  for (std::size_t nic = 0; nic < map.load.size(); ++nic) {
    if (map.load[nic] > 0) continue;
    const bool down = topology.nics()[nic].active == false;
    unused += " " + topology.nics()[nic].name + (down ? " (down)" : "");
  }
  if (!unused.empty()) text += wrapped("not used, nobody's nearest:" + unused, 2) + "\n";
  return text;
}

std::string explain_text(const Topology& topology, DeviceId a, DeviceId b) {
  const Path way = path(topology, a, b);
  std::string text =
      fmt::format("{} to {}: nvidia-smi {}", topology.name(a), topology.name(b), cell(way, false));
  if (way.nvlinks > 0) text += fmt::format(" ({} by PCI)", cell(way, true));
  text += fmt::format(", NCCL {}", to_string(way.nccl));
  text += "\n\n";
  if (way.nvlinks > 0) text += fmt::format("  over {} NVLinks; by PCI:\n", way.nvlinks);
  if (way.nccl == topo::NcclClass::p2c) {
    const topo::Gpu& gpu = topology.gpus()[index(topology.is_gpu(a) ? a : b)];
    text += fmt::format("  over {} NVLink-C2C of {} to its CPU and from there; by PCI:\n",
                        gpu.c2c_links, gpu.name);
  }
  for (const topo::Hop& hop : hops(topology, a, b)) {
    text += fmt::format("  {}\n", hop.what);
    if (hop.gbytes) text += fmt::format("    | {:.1f} GB/s\n", *hop.gbytes);
  }
  text += fmt::format("\n  slowest known link: {}{}\n", rate_text(way.bottleneck),
                      way.limit.empty() ? "" : fmt::format(" ({})", way.limit));
  if (way.near != way.pci && way.nvlinks == 0) {
    text += fmt::format("  what the bytes see: {}\n", to_string(way.near));
  }
  if (!way.nccl_reason.empty()) text += fmt::format("  NCCL differs: {}\n", way.nccl_reason);
  if (topology.is_gpu(a) && !topology.is_gpu(b)) {
    const std::size_t proxy = pxn_proxy(topology, index(a), index(b) - topology.gpus().size());
    if (proxy != topo::kNone) {
      text +=
          fmt::format("  NCCL may send through {} instead (PXN)\n", topology.gpus()[proxy].name);
    }
  }
  if (!way.remark.empty()) text += fmt::format("  note: {}\n", way.remark);
  return text;
}

std::string compare_text(const Topology& before, const Topology& after) {
  const topo::RailMap was = rail_map(before);
  const topo::RailMap is = rail_map(after);
  const auto name = [](const Topology& topology, const topo::RailMap& map, std::size_t gpu) {
    std::string text;
    for (const topo::RailChoice& choice : map.of_gpu[gpu]) {
      text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", topology.nics()[choice.nic].name,
                          cell(choice.path, true), rate_text(choice.path.bottleneck));
    }
    return text.empty() ? std::string("none") : text;
  };
  std::string text;
  int changed = 0;
  for (std::size_t gpu = 0; gpu < before.gpus().size(); ++gpu) {
    // A moved GPU keeps its bus id, by which GPUs are numbered.
    const std::string old_way = name(before, was, gpu);
    const std::string new_way = name(after, is, gpu);
    if (old_way == new_way) continue;
    ++changed;
    text += fmt::format("{}\n  now:     {}\n  what if: {}\n", before.gpus()[gpu].name, old_way,
                        new_way);
  }
  return changed == 0 ? std::string("the map stays as it is\n")
                      : text + fmt::format("{} of {} GPUs change\n", changed, before.gpus().size());
}

}  // namespace gdrx::tools
