// SPDX-License-Identifier: Apache-2.0
#include "topo/read/links_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "topo/read/field_text.hpp"

namespace gdrx::topo {
namespace {

std::size_t node_of(const Parts& parts, const std::string& name) {
  const auto bus = parse_bus_id(name);
  const auto found = std::find_if(parts.nodes.begin(), parts.nodes.end(),
                                  [&](const PciNode& node) { return bus && node.bus == bus; });
  return found == parts.nodes.end() ? kNone : static_cast<std::size_t>(found - parts.nodes.begin());
}

Gpu* gpu_at(Parts& parts, std::size_t node) {
  const auto found = std::find_if(parts.gpus.begin(), parts.gpus.end(),
                                  [&](const Gpu& gpu) { return gpu.node == node; });
  return node == kNone || found == parts.gpus.end() ? nullptr : &*found;
}

void add_nvlink(Parts& parts, std::size_t node, std::istringstream& words) {
  NvLink link;
  std::string peer;
  constexpr int kMost = 64;
  constexpr double kFastest = 1000;
  if (!(words >> peer >> link.count) || link.count < 1 || link.count > kMost) return;
  if (!(words >> link.gbytes) || !(link.gbytes >= 0) || link.gbytes > kFastest) link.gbytes = 0;
  link.gpu = node;
  if (peer != "switch") {
    link.peer = node_of(parts, peer);
    if (gpu_at(parts, link.peer) == nullptr) return;
  }
  parts.nvlinks.push_back(link);
}

}  // namespace

std::string links_text(const Topology& topology) {
  if (!topology.nvlink_known()) return {};
  std::string text =
      "# what NVML said: gpu BUS SM MODEL, nvlink BUS PEER COUNT GB/s, c2c BUS COUNT GB/s\n";
  const auto name = [&](const Gpu& gpu) { return topology.nodes()[gpu.node].name; };
  for (const Gpu& gpu : topology.gpus()) {
    if (gpu.node == kNone) continue;
    text += fmt::format("gpu {} {} {}\n", name(gpu), gpu.sm, gpu.model);
    if (gpu.c2c_links > 0) {
      text += fmt::format("c2c {} {} {}\n", name(gpu), gpu.c2c_links, gpu.c2c_gbytes);
    }
  }
  for (const NvLink& link : topology.nvlinks()) {
    const Gpu& from = topology.gpus()[link.gpu];
    const bool known = link.peer == kNone || topology.gpus()[link.peer].node != kNone;
    if (from.node == kNone || !known) continue;
    text += fmt::format("nvlink {} {} {} {}\n", name(from),
                        link.peer == kNone ? "switch" : name(topology.gpus()[link.peer]),
                        link.count, link.gbytes);
  }
  return text;
}

void add_links_text(Parts& parts, std::string_view text) {
  if (text.empty()) return;
  parts.nvlink_known = true;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind;
    std::string bus;
    words >> kind >> bus;
    const std::size_t node = node_of(parts, bus);
    Gpu* gpu = gpu_at(parts, node);
    if (gpu == nullptr) continue;
    if (kind == "nvlink") add_nvlink(parts, node, words);
    if (kind == "c2c" && !(words >> gpu->c2c_links >> gpu->c2c_gbytes)) gpu->c2c_links = 0;
    if (kind == "gpu") {
      words >> gpu->sm;
      std::string model;
      std::getline(words, model);
      if (!trim(model).empty()) gpu->model = trim(model);
    }
  }
}

}  // namespace gdrx::topo
