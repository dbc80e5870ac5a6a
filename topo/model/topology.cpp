// SPDX-License-Identifier: Apache-2.0
// From parts to a value: checked, and in one order whatever the order of enumeration was.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/printable.hpp"
#include "gdrx/topology.hpp"
#include "topo/model/natural.hpp"
#include "topo/model/pci_vendor.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::topo {
namespace {

constexpr std::size_t kMaxNodes = 65536;
constexpr std::size_t kMaxGpus = 64;
constexpr std::size_t kMaxNics = 512;  // with virtual functions; the matrix is quadratic
constexpr std::size_t kMaxNuma = 1024;
constexpr std::size_t kMaxDepth = 64;  // bridges; real hosts have ten

// order[new] = old
template <class T, class Less>
std::vector<std::size_t> sorted(const std::vector<T>& items, Less less) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return less(items[a], items[b]); });
  return order;
}

template <class T>
void permute(std::vector<T>& items, const std::vector<std::size_t>& order) {
  std::vector<T> next;
  next.reserve(items.size());
  for (const std::size_t old : order) next.push_back(std::move(items[old]));
  items = std::move(next);
}

std::vector<std::size_t> inverse(const std::vector<std::size_t>& order) {
  std::vector<std::size_t> to(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) to[order[i]] = i;
  return to;
}

Result<void> check(const Parts& parts) {
  const std::size_t count = parts.nodes.size();
  if (count > kMaxNodes || parts.gpus.size() > kMaxGpus || parts.nics.size() > kMaxNics ||
      parts.numa.size() > kMaxNuma) {
    return fail(Errc::invalid_argument,
                fmt::format("{}: {} PCI nodes, {} GPUs, {} NICs are more than a host has",
                            parts.source, count, parts.gpus.size(), parts.nics.size()));
  }
  std::set<std::string_view> names;
  for (const PciNode& node : parts.nodes) {
    if (!names.insert(node.name).second) {
      return fail(Errc::invalid_argument,
                  fmt::format("{}: {} is there twice", parts.source, node.name));
    }
    std::size_t depth = 0;
    for (std::size_t up = node.parent; up != kNone; up = parts.nodes[up].parent) {
      if (up >= count || ++depth > kMaxDepth) {
        return fail(Errc::invalid_argument,
                    fmt::format("{}: the bridges above {} form no tree, or are more than {}",
                                parts.source, node.name, kMaxDepth));
      }
    }
  }
  const auto bad = [&](std::size_t node) { return node != kNone && node >= count; };
  for (const Gpu& gpu : parts.gpus) {
    if (bad(gpu.node)) return fail(Errc::internal, "a GPU on no node");
  }
  for (const Nic& nic : parts.nics) {
    if (bad(nic.node) || bad(nic.dma_node)) return fail(Errc::internal, "a NIC on no node");
  }
  return {};
}

void sort_nodes(Parts& parts) {
  const auto order = sorted(parts.nodes, [](const PciNode& a, const PciNode& b) {
    return std::tie(a.bus, a.name) < std::tie(b.bus, b.name);
  });
  const auto to = inverse(order);
  permute(parts.nodes, order);
  const auto move = [&](std::size_t& node) { node = node == kNone ? kNone : to[node]; };
  for (PciNode& node : parts.nodes) move(node.parent);
  for (Gpu& gpu : parts.gpus) move(gpu.node);
  for (Nic& nic : parts.nics) {
    move(nic.node);
    move(nic.dma_node);
  }
  for (NvLink& link : parts.nvlinks) {
    move(link.gpu);
    move(link.peer);
  }
}

// nvidia-smi numbers GPUs by bus id; indices that programs see may be masked or reordered.
void sort_devices(Parts& parts) {
  permute(parts.gpus, sorted(parts.gpus, [](const Gpu& a, const Gpu& b) {
            return std::tie(a.node, a.name) < std::tie(b.node, b.name);
          }));
  for (std::size_t i = 0; i < parts.gpus.size(); ++i) parts.gpus[i].name = fmt::format("GPU{}", i);
  permute(parts.nics, sorted(parts.nics, [](const Nic& a, const Nic& b) {
            if (a.name != b.name) return natural_less(a.name, b.name);
            return std::tie(a.node, a.port) < std::tie(b.node, b.port);
          }));
  permute(parts.numa,
          sorted(parts.numa, [](const NumaNode& a, const NumaNode& b) { return a.id < b.id; }));
}

void index_nvlinks(Parts& parts) {
  std::vector<NvLink> kept;
  const auto gpu_at = [&](std::size_t node) {
    for (std::size_t i = 0; i < parts.gpus.size(); ++i) {
      if (parts.gpus[i].node == node) return i;
    }
    return kNone;
  };
  for (NvLink link : parts.nvlinks) {
    const bool to_switch = link.peer == kNone;
    link.gpu = link.gpu == kNone ? kNone : gpu_at(link.gpu);
    link.peer = to_switch ? kNone : gpu_at(link.peer);
    if (link.gpu == kNone || (!to_switch && link.peer == kNone) || link.count <= 0) continue;
    kept.push_back(link);
  }
  std::sort(kept.begin(), kept.end(), [](const NvLink& a, const NvLink& b) {
    return std::tie(a.gpu, a.peer, a.count) < std::tie(b.gpu, b.peer, b.count);
  });
  parts.nvlinks = std::move(kept);
}

// Emulated bridges: QEMU's own ports and the TI switch that it models.
bool is_emulated(const PciNode& node) {
  return node.vendor == vendor::kQemu || node.vendor == vendor::kTexas;
}

// Files may be anybody's: nothing in them reaches a terminal as more than text.
void clean(Parts& parts) {
  const auto each = [](std::string& text) { text = printable(text); };
  each(parts.source);
  for (PciNode& node : parts.nodes) each(node.cpus);
  for (Gpu& gpu : parts.gpus) {
    each(gpu.model);
    each(gpu.uuid);
  }
  for (NumaNode& node : parts.numa) each(node.cpus);
  for (Nic& nic : parts.nics) {
    each(nic.name);
    each(nic.link_layer);
  }
  for (std::string& note : parts.notes) each(note);
}

struct Shape {
  std::size_t placed = 0;
  bool numa = false;         // a device says its node
  bool switches = false;     // a device is below a switch
  bool emulated = false;     // a device is below QEMU's own root port
  bool gpu_on_bus0 = false;  // a physical one never is
  bool bare_gpu = false;     // straight on a host bridge: a physical one has a root port
};

void look_above(const Topology& topology, DeviceId id, Shape& shape) {
  const auto& nodes = topology.nodes();
  const std::size_t node = topology.node(id);
  std::size_t bridges = 0;
  bool exact = false;
  for (std::size_t up = nodes[node].parent; up != kNone; up = nodes[up].parent) {
    shape.switches |= nodes[up].kind == NodeKind::pci_switch;
    shape.emulated |= nodes[up].kind == NodeKind::bridge && nodes[up].vendor == vendor::kQemu;
    if (nodes[up].kind == NodeKind::bridge && !is_emulated(nodes[up])) ++bridges;
    exact = nodes[up].kind == NodeKind::root && nodes[up].exact;
  }
  ++shape.placed;
  shape.numa |= topology.numa_of(node) >= 0;
  shape.switches |= bridges > 1;
  if (!topology.is_gpu(id) || bridges > 0) return;
  shape.gpu_on_bus0 |= nodes[node].bus && nodes[node].bus->bus == 0;
  shape.bare_gpu |= exact;
}

Shape shape_of(const Topology& topology) {
  Shape shape;
  for (std::size_t i = 0; i < topology.devices(); ++i) {
    if (topology.node(DeviceId(i)) != kNone) look_above(topology, DeviceId(i), shape);
  }
  return shape;
}

}  // namespace

Result<Topology> Topology::make(Parts parts) {
  GDRX_TRY(check(parts));
  clean(parts);
  sort_nodes(parts);
  sort_devices(parts);
  index_nvlinks(parts);
  Topology topology;
  topology.parts_ = std::move(parts);
  // A hypervisor that passes devices through puts each on a virtual root port or straight on the
  // root bus. Without NUMA nodes nothing is known, with them nothing but these.
  const Shape shape = shape_of(topology);
  const bool flat = shape.placed > 0 && !shape.switches;
  const bool virtual_bus = topology.parts_.in_vm || shape.emulated || shape.gpu_on_bus0;
  topology.flattened_ = flat && !shape.numa && virtual_bus;
  topology.hides_switches_ = flat && shape.numa && shape.bare_gpu;
  return topology;
}

const std::string& Topology::name(DeviceId id) const {
  return is_gpu(id) ? parts_.gpus[index(id)].name
                    : parts_.nics[index(id) - parts_.gpus.size()].name;
}

std::size_t Topology::node(DeviceId id) const {
  return is_gpu(id) ? parts_.gpus[index(id)].node
                    : parts_.nics[index(id) - parts_.gpus.size()].node;
}

Result<DeviceId> Topology::find(std::string_view text) const {
  for (std::size_t i = 0; i < devices(); ++i) {
    if (name(DeviceId(i)) == text) return DeviceId(i);
  }
  if (const auto bus = parse_bus_id(text)) {
    for (std::size_t i = 0; i < devices(); ++i) {
      const std::size_t at = node(DeviceId(i));
      if (at != kNone && parts_.nodes[at].bus == bus) return DeviceId(i);
    }
  }
  for (std::size_t i = 0; i < parts_.nics.size(); ++i) {
    if (text == fmt::format("NIC{}", i)) return nic(i);
  }
  std::string known;
  for (std::size_t i = 0; i < devices() && i < 24; ++i) known += " " + name(DeviceId(i));
  return fail(Errc::invalid_argument,
              fmt::format("no device '{}'; there are:{}", text, known.empty() ? " none" : known));
}

int Topology::numa_of(std::size_t node) const {
  for (; node != kNone; node = parts_.nodes[node].parent) {
    if (parts_.nodes[node].numa >= 0) return parts_.nodes[node].numa;
  }
  return -1;
}

int Topology::numa_with_cpus(int numa) const {
  const auto& all = parts_.numa;
  const auto own =
      std::find_if(all.begin(), all.end(), [&](const NumaNode& node) { return node.id == numa; });
  if (own == all.end() || !own->cpus.empty() || own->distances.size() != all.size()) return numa;
  std::size_t best = kNone;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].cpus.empty()) continue;
    if (best == kNone || own->distances[i] < own->distances[best]) best = i;
  }
  return best == kNone ? numa : all[best].id;
}

int Topology::package_of(int numa) const {
  numa = numa_with_cpus(numa);
  for (const NumaNode& node : parts_.numa) {
    if (node.id == numa) return node.package;
  }
  return -1;
}

std::string Topology::cpus_of(int numa) const {
  numa = numa_with_cpus(numa);
  for (const NumaNode& node : parts_.numa) {
    if (node.id == numa) return node.cpus;
  }
  return {};
}

std::string Topology::cpus_near(std::size_t node) const {
  const std::string cpus = cpus_of(numa_of(node));
  return !cpus.empty() || node == kNone ? cpus : parts_.nodes[node].cpus;
}

int Topology::numa_near(std::size_t node) const {
  if (const int own = numa_of(node); own >= 0 || node == kNone) return numa_with_cpus(own);
  const std::string cpus = cpus_near(node);
  for (const NumaNode& numa : parts_.numa) {
    if (!cpus.empty() && numa.cpus == cpus) return numa.id;
  }
  return -1;
}

int Topology::nvlinks_between(std::size_t gpu_a, std::size_t gpu_b) const {
  int direct = 0;
  int to_switch[2] = {0, 0};
  for (const NvLink& link : parts_.nvlinks) {
    // Sources tell a link from one end or from both: the larger count is the truth.
    const bool joins =
        (link.gpu == gpu_a && link.peer == gpu_b) || (link.gpu == gpu_b && link.peer == gpu_a);
    if (joins) direct = std::max(direct, link.count);
    if (link.peer == kNone && link.gpu == gpu_a) to_switch[0] += link.count;
    if (link.peer == kNone && link.gpu == gpu_b) to_switch[1] += link.count;
  }
  return direct > 0 ? direct : std::min(to_switch[0], to_switch[1]);
}

}  // namespace gdrx::topo
