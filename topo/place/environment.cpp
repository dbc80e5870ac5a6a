// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "topo/model/pci_vendor.hpp"
#include "topo/place/placement.hpp"

namespace gdrx::topo {
namespace {

bool is_word(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_' || letter == '-' || letter == '.';
  });
}

std::string ports_of(const Topology& topology, const RankPlace& rank) {
  std::string text;
  for (const RailChoice& choice : rank.nics) {
    const Nic& nic = topology.nics()[choice.nic];
    // A source without names, or a name that is more than a word: nobody's setting.
    if (nic.is_virtual || nic.active == false || parse_bus_id(nic.name) || !is_word(nic.name)) {
      continue;
    }
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", nic.name, std::max(1, nic.port));
  }
  return text;
}

}  // namespace

bool is_amd(const Topology& topology) {
  return std::any_of(topology.gpus().begin(), topology.gpus().end(), [&](const Gpu& gpu) {
    return gpu.node != kNone && topology.nodes()[gpu.node].vendor == vendor::kAmdGraphics;
  });
}

std::vector<std::pair<std::string, std::string>> rank_environment(const Topology& topology,
                                                                  const Placement& placement,
                                                                  const RankPlace& rank) {
  std::vector<std::pair<std::string, std::string>> set;
  const bool amd = is_amd(topology);
  if (!placement.gpu_tokens.empty()) {
    if (!amd) set.emplace_back("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    const std::string name = amd ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
    if (rank.token.starts_with("MIG-")) {
      set.emplace_back(name, rank.token);
    } else if (placement.reorders_gpus) {
      set.emplace_back(name, fmt::format("{}", fmt::join(placement.gpu_tokens, ",")));
    }
  }
  const std::string ports = ports_of(topology, rank);
  if (!ports.empty()) set.emplace_back("UCX_NET_DEVICES", ports);
  return set;
}

}  // namespace gdrx::topo
