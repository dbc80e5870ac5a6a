// SPDX-License-Identifier: Apache-2.0
#include "topo/read/hwloc.hpp"

#include <fmt/format.h>
#include <hwloc.h>
#include <hwloc/distances.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "base/printable.hpp"
#include "topo/model/pci_vendor.hpp"
#include "topo/read/field_text.hpp"
#include "topo/read/xml.hpp"

namespace gdrx::topo {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, Destroy>;

Result<Handle> make_handle() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return fail(Errc::system, "hwloc_topology_init", errno);
  return Handle(raw);
}

/// An enumeration's value as it stands in memory: what a file gives may be none of its enumerators.
template <class Enumeration>
unsigned number_of(const Enumeration& value) {
  unsigned number = 0;
  static_assert(sizeof number == sizeof value);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

std::string list_of(hwloc_const_bitmap_t set) {
  char* list = nullptr;
  std::string text;
  if (set && hwloc_bitmap_list_asprintf(&list, set) >= 0) text = list;
  std::free(list);  // hwloc allocates it with malloc
  return text;
}

std::vector<NumaNode> numa_nodes(hwloc_topology_t topology) {
  std::vector<NumaNode> all;
  for (hwloc_obj_t at = nullptr;
       (at = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, at)) != nullptr;) {
    NumaNode node;
    node.id = static_cast<int>(at->os_index);
    const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, at);
    if (package) node.package = static_cast<int>(package->os_index);
    node.cpus = list_of(at->cpuset);
    for (hwloc_obj_t core = nullptr;
         at->cpuset && (core = hwloc_get_next_obj_inside_cpuset_by_type(
                            topology, at->cpuset, HWLOC_OBJ_CORE, core)) != nullptr;) {
      node.cores.push_back(list_of(core->cpuset));
    }
    all.push_back(node);
  }
  return all;
}

class HwlocReader {
 public:
  HwlocReader(hwloc_topology_t topology, std::string source) : topology_(topology) {
    parts_.source = std::move(source);
  }

  Parts read() {
    parts_.numa = numa_nodes(topology_);
    visit_normal(hwloc_get_root_obj(topology_));
    if (!saw_verbs_) parts_.nics = std::move(likely_nics_);
    if (!saw_verbs_ && !parts_.nics.empty()) {
      parts_.notes.push_back("no RDMA device names in the file: NICs are taken by their PCI class");
    }
    distances("NVLinkBandwidth");
    if (!parts_.nvlink_known && !parts_.gpus.empty()) {
      parts_.notes.push_back("NVLink is not in this file: all pairs are shown by PCI");
    }
    return std::move(parts_);
  }

 private:
  void visit_normal(hwloc_obj_t object) {
    for (hwloc_obj_t io = object->io_first_child; io; io = io->next_sibling) {
      visit_io(io, kNone, locality(object));
    }
    for (hwloc_obj_t child = object->first_child; child; child = child->next_sibling) {
      visit_normal(child);
    }
    for (hwloc_obj_t child = object->memory_first_child; child; child = child->next_sibling) {
      visit_normal(child);
    }
  }

  // The one NUMA node with processors that an object lies in, -1 if there are more.
  int locality(hwloc_obj_t object) const {
    int found = -1;
    if (!object->nodeset) return -1;
    unsigned id = 0;
    hwloc_bitmap_foreach_begin(id, object->nodeset) {
      const hwloc_obj_t node = hwloc_get_numanode_obj_by_os_index(topology_, id);
      const bool has_cpus = node && node->cpuset && !hwloc_bitmap_iszero(node->cpuset);
      if (has_cpus) {
        if (found >= 0) return -1;
        found = static_cast<int>(id);
      }
    }
    hwloc_bitmap_foreach_end();
    return found;
  }

  void visit_io(hwloc_obj_t object, std::size_t parent, int numa) {
    std::size_t at = parent;
    if (object->type == HWLOC_OBJ_BRIDGE) at = bridge(object, parent, numa);
    if (object->type == HWLOC_OBJ_PCI_DEVICE) at = device(object, parent, numa);
    for (hwloc_obj_t io = object->io_first_child; io; io = io->next_sibling) {
      visit_io(io, at, numa);
    }
  }

  std::size_t add(PciNode node) {
    parts_.nodes.push_back(std::move(node));
    return parts_.nodes.size() - 1;
  }

  static PciNode pci_node(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci, std::size_t parent,
                          int numa) {
    PciNode node;
    node.bus = BusId{pci.domain, pci.bus, pci.dev, static_cast<std::uint8_t>(pci.func & 7)};
    node.name = to_string(*node.bus);
    node.parent = parent;
    node.numa = numa;
    node.class_code = static_cast<std::uint32_t>(pci.class_id) << 8;
    node.vendor = pci.vendor_id;
    node.device = pci.device_id;
    node.subsystem_vendor = pci.subvendor_id;
    node.subsystem_device = pci.subdevice_id;
    const double speed = static_cast<double>(pci.linkspeed);
    node.link.total = std::isfinite(speed) && speed > 0 ? speed : 0;
    return node;
  }

  std::size_t bridge(hwloc_obj_t object, std::size_t parent, int numa) {
    const auto& attributes = object->attr->bridge;
    PciNode node;
    if (number_of(attributes.upstream_type) == HWLOC_OBJ_BRIDGE_HOST) {
      node.kind = NodeKind::root;
      node.name = fmt::format("pci{:04x}:{:02x}", attributes.downstream.pci.domain,
                              attributes.downstream.pci.secondary_bus);
      node.numa = numa;
    } else {
      node = pci_node(attributes.upstream.pci, parent, numa);
      node.kind = NodeKind::bridge;
    }
    return add(std::move(node));
  }

  std::size_t device(hwloc_obj_t object, std::size_t parent, int numa) {
    const std::size_t at = add(pci_node(object->attr->pcidev, parent, numa));
    const PciNode& node = parts_.nodes[at];
    bool is_gpu = is_gpu_class(node.class_code, node.vendor);
    Gpu gpu;
    gpu.node = at;
    std::string interface;
    for (hwloc_obj_t io = object->io_first_child; io; io = io->next_sibling) {
      if (io->type != HWLOC_OBJ_OS_DEVICE || !io->name) continue;
      const std::string_view name = io->name;
      if (name.starts_with("cuda") || name.starts_with("nvml") || name.starts_with("rsmi")) {
        is_gpu = true;
        const char* model = hwloc_obj_get_info_by_name(io, "GPUModel");
        if (model) gpu.model = model;
      }
      const unsigned type = number_of(io->attr->osdev.type);
      if (type == HWLOC_OBJ_OSDEV_OPENFABRICS) {
        saw_verbs_ = true;
        parts_.nics.push_back({std::string(name), at, kNone, 0, 0, {}, false, active(io)});
      }
      if (type == HWLOC_OBJ_OSDEV_NETWORK && interface.empty()) interface = name;
    }
    const char* model = hwloc_obj_get_info_by_name(object, "PCIDevice");
    if (gpu.model.empty() && model) gpu.model = model;
    if (is_gpu) parts_.gpus.push_back(gpu);
    const std::uint32_t kind = node.class_code >> 8;
    if (kind == 0x0207 ||
        (kind == 0x0200 && (node.vendor == vendor::kMellanox || node.vendor == vendor::kAmazon))) {
      likely_nics_.push_back(
          {interface.empty() ? node.name : interface, at, kNone, 0, 0, {}, false});
    }
    by_gp_index_[object->gp_index] = at;
    return at;
  }

  // "Port1State" and so on; 4 is InfiniBand's number for an active port.
  static std::optional<bool> active(hwloc_obj_t nic) {
    std::optional<bool> found;
    for (int port = 1; port <= 2; ++port) {
      const char* state = hwloc_obj_get_info_by_name(nic, fmt::format("Port{}State", port).c_str());
      if (state) found = found.value_or(false) || to_int(state, 0) == 4;
    }
    return found;
  }

  std::size_t node_of(hwloc_obj_t object) const {
    while (object && object->type == HWLOC_OBJ_OS_DEVICE) object = object->parent;
    if (!object) return kNone;
    const auto found = by_gp_index_.find(object->gp_index);
    return found == by_gp_index_.end() ? kNone : found->second;
  }

  bool is_nvswitch(hwloc_obj_t object) const {
    const bool named = object->subtype && std::string_view(object->subtype) == "NVSwitch";
    const std::size_t at = node_of(object);
    return named || (at != kNone && parts_.nodes[at].class_code >> 8 == 0x0680);
  }

  // MB/s of all links between two objects; 25000 a link since NVLink 2, 20000 before.
  static int links_of(std::uint64_t value, const PciNode& gpu) {
    const bool pascal = gpu.device >= 0x15f0 && gpu.device <= 0x15ff;
    const double each = pascal ? 20000 : 25000;
    return value == 0
               ? 0
               : std::max(1,
                          static_cast<int>(std::lround(
                              static_cast<double>(std::min<std::uint64_t>(value, 1'000'000'000)) /
                              each)));
  }

  void distances(const char* name) {
    hwloc_distances_s* found = nullptr;
    unsigned count = 1;
    if (hwloc_distances_get_by_name(topology_, name, &count, &found, 0) != 0 || count == 0 ||
        !found) {
      return;
    }
    parts_.nvlink_known = true;
    for (unsigned i = 0; i < found->nbobjs; ++i) {
      const std::size_t from = node_of(found->objs[i]);
      if (from == kNone || is_nvswitch(found->objs[i])) continue;
      for (unsigned j = 0; j < found->nbobjs; ++j) {
        if (i == j) continue;
        const int links = links_of(found->values[i * found->nbobjs + j], parts_.nodes[from]);
        if (links == 0) continue;
        const bool to_switch = is_nvswitch(found->objs[j]);
        const std::size_t to = to_switch ? kNone : node_of(found->objs[j]);
        if (!to_switch && to == kNone) continue;  // NVLink to a POWER9 CPU
        parts_.nvlinks.push_back({from, to, links, 0});
      }
    }
    hwloc_distances_release(topology_, found);
  }

  hwloc_topology_t topology_;
  Parts parts_;
  std::vector<Nic> likely_nics_;
  bool saw_verbs_ = false;
  std::map<std::uint64_t, std::size_t> by_gp_index_;
};

// hwloc writes both sets of each kind for every object of CPUs and memory, and reads through a null
// pointer where one of two neighbours lacks one.
Result<void> check_sets(const XmlDocument& document, std::string_view source) {
  constexpr std::array<std::string_view, 4> kWithoutSets{"Bridge", "PCIDev", "OSDev", "Misc"};
  for (const XmlElement& element : document.elements) {
    const std::string_view type = element["type"];
    const bool bare =
        std::find(kWithoutSets.begin(), kWithoutSets.end(), type) != kWithoutSets.end();
    if (element.name != "object" || bare) continue;
    const bool cpus = !element["cpuset"].empty() && !element["complete_cpuset"].empty();
    const bool nodes = element["nodeset"].empty() == element["complete_nodeset"].empty();
    if (cpus && nodes) continue;
    return fail(Errc::invalid_argument,
                fmt::format("{}: line {}: a {} of no CPUs: this is no file of hwloc's", source,
                            element.line, type.empty() ? "thing" : type.substr(0, 20)));
  }
  return {};
}

// hwloc takes two devices of one bus id; a host has none.
Result<void> check_buses(const XmlDocument& document, std::string_view source) {
  std::map<std::string_view, std::size_t> lines;
  for (const XmlElement& element : document.elements) {
    const std::string_view bus = element["pci_busid"];
    const bool is_device = element["type"] == "PCIDev" || element["type"] == "Bridge";
    if (!is_device || bus.empty() || !parse_bus_id(bus)) continue;
    const auto [before, is_new] = lines.emplace(bus, element.line);
    if (is_new) continue;
    return fail(Errc::invalid_argument,
                fmt::format("{}: line {}: {} is there twice, first in line {}", source,
                            element.line, bus, before->second));
  }
  return {};
}

}  // namespace

Result<Parts> hwloc_parts(std::string_view xml, std::string source) {
  const Handle topology = GDRX_TRY(make_handle());
  // hwloc hides I/O unless it is asked for, and every bridge that has nothing important below.
  hwloc_topology_set_io_types_filter(topology.get(), HWLOC_TYPE_FILTER_KEEP_ALL);
  const std::string text(xml);  // hwloc wants the terminating zero
  const auto refuse = [&] {
    return fail(Errc::invalid_argument,
                fmt::format("{}: hwloc {} cannot read it (hwloc 1 to 2 files only)", source,
                            HWLOC_API_VERSION >= 0x30000 ? "3" : "2"));
  };
  if (hwloc_topology_set_xmlbuffer(topology.get(), text.c_str(),
                                   static_cast<int>(text.size() + 1)) != 0) {
    return refuse();
  }
  if (hwloc_topology_load(topology.get()) != 0) return refuse();
  return HwlocReader(topology.get(), std::move(source)).read();
}

Result<std::vector<NumaNode>> hwloc_numa() {
  const Handle topology = GDRX_TRY(make_handle());
  hwloc_topology_set_io_types_filter(topology.get(), HWLOC_TYPE_FILTER_KEEP_NONE);
  if (hwloc_topology_load(topology.get()) != 0) {
    return fail(Errc::system, "hwloc_topology_load", errno);
  }
  return numa_nodes(topology.get());
}

Result<Topology> parse_hwloc_xml(std::string_view text, std::string source) {
  // Our reader first: it bounds what the larger parser below gets to see.
  const XmlDocument document = GDRX_TRY(parse_xml(text, source));
  if (document.root().name != "topology") {
    return fail(Errc::invalid_argument,
                fmt::format("{}: <{}> is no hwloc topology", source, document.root().name));
  }
  const std::string_view version = document.root()["version"];
  if (HWLOC_API_VERSION < 0x30000 && version.starts_with("3")) {
    return fail(
        Errc::invalid_argument,
        fmt::format("{}: line {}: a file of hwloc {}, which hwloc 2 cannot read: write it by "
                    "`lstopo --export-xml-flags v2`",
                    source, document.root().line, printable(version.substr(0, 20))));
  }
  GDRX_TRY(check_sets(document, source));
  GDRX_TRY(check_buses(document, source));
  return Topology::make(GDRX_TRY(hwloc_parts(text, std::move(source))));
}

}  // namespace gdrx::topo
