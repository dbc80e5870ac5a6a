// SPDX-License-Identifier: Apache-2.0
// NCCL's topology XML: NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE and what clouds ship for their VMs.
// It has whole switches (no ports), no root ports and no host bridges: a <cpu> is a NUMA node.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topo/model/pci_vendor.hpp"
#include "topo/read/field_text.hpp"
#include "topo/read/xml.hpp"

namespace gdrx::topo {
namespace {

struct PendingLink {
  std::size_t gpu = kNone;
  std::string target;
  int count = 0;
  bool xgmi = false;
};

class NcclReader {
 public:
  NcclReader(const XmlDocument& document, std::string source) : document_(document) {
    parts_.source = std::move(source);
  }

  Result<Parts> read() {
    const XmlElement& system = document_.root();
    if (system.name != "system") {
      return fail(Errc::invalid_argument,
                  fmt::format("{}: <{}> is no NCCL topology", parts_.source, system.name));
    }
    for (const std::size_t child : system.children) {
      const XmlElement& element = document_.elements[child];
      if (element.name == "cpu") GDRX_TRY(cpu(element));
    }
    GDRX_TRY(join_nvlinks());
    if (unnamed_ > 0) {
      parts_.notes.push_back(
          fmt::format("{} PCI devices without a class: NCCL fills them in on the host, "
                      "here they are neither GPU nor NIC",
                      unnamed_));
    }
    if (!parts_.nvlink_known && parts_.gpus.size() > 1) {
      parts_.notes.push_back("NVLink is not in this file: all pairs are shown by PCI");
    }
    if (!outside_.empty()) parts_.notes.push_back(outside_ + ": no PCI device, left out");
    return std::move(parts_);
  }

 private:
  Result<void> cpu(const XmlElement& element) {
    PciNode root;
    root.kind = NodeKind::root;
    root.exact = false;
    root.numa = to_int(element["numaid"], -1);
    root.name = fmt::format("cpu{}", parts_.numa.size());
    if (root.numa >= 0) root.name = fmt::format("numa{}", root.numa);
    NumaNode numa;
    numa.id = root.numa;
    numa.cpus = cpus_of_mask(element["affinity"]);
    parts_.numa.push_back(numa);
    parts_.nodes.push_back(root);
    const std::size_t at = parts_.nodes.size() - 1;
    for (const std::size_t child : element.children) {
      const XmlElement& below = document_.elements[child];
      if (below.name == "pci") GDRX_TRY(pci(below, at));
      if (below.name == "nic") nets(below, kNone);
    }
    return {};
  }

  Result<void> pci(const XmlElement& element, std::size_t parent) {
    PciNode node;
    node.bus = parse_bus_id(element["busid"]);
    if (!node.bus) {
      return fail(Errc::invalid_argument,
                  fmt::format("{}: line {}: '{}' is no bus id", parts_.source, element.line,
                              element["busid"]));
    }
    node.name = to_string(*node.bus);
    const auto [before, is_new] = lines_.emplace(node.name, element.line);
    if (!is_new) {
      return fail(Errc::invalid_argument,
                  fmt::format("{}: line {}: {} is there twice, first in line {}", parts_.source,
                              element.line, node.name, before->second));
    }
    node.parent = parent;
    node.class_code = to_hex(element["class"]);
    node.vendor = static_cast<std::uint16_t>(to_hex(element["vendor"]));
    node.device = static_cast<std::uint16_t>(to_hex(element["device"]));
    node.subsystem_vendor = static_cast<std::uint16_t>(to_hex(element["subsystem_vendor"]));
    node.subsystem_device = static_cast<std::uint16_t>(to_hex(element["subsystem_device"]));
    node.link.gigatransfers = leading_number(element["link_speed"]);
    node.link.width = to_int(element["link_width"], 0);
    const auto has = [&](std::string_view name) {
      return std::any_of(element.children.begin(), element.children.end(),
                         [&](std::size_t child) { return document_.elements[child].name == name; });
    };
    if (is_bridge_class(node.class_code) || has("pci")) node.kind = NodeKind::pci_switch;
    parts_.nodes.push_back(node);
    const std::size_t at = parts_.nodes.size() - 1;
    if (node.kind == NodeKind::device) device(element, node, at, has("gpu"), has("nic"));
    for (const std::size_t child : element.children) {
      if (document_.elements[child].name == "pci") GDRX_TRY(pci(document_.elements[child], at));
    }
    return {};
  }

  void device(const XmlElement& element, const PciNode& node, std::size_t at, bool has_gpu,
              bool has_nic) {
    const std::uint32_t kind = node.class_code >> 8;
    if (has_gpu || is_gpu_class(node.class_code, node.vendor)) {
      parts_.gpus.push_back({});
      parts_.gpus.back().node = at;
    } else if (has_nic || kind == 0x0200 || kind == 0x0207) {
      if (!has_nic) parts_.nics.push_back({node.name, at, kNone, 0, 0, {}, false});
    } else if (node.class_code == 0) {
      ++unnamed_;
    }
    for (const std::size_t child : element.children) {
      const XmlElement& below = document_.elements[child];
      if (below.name == "gpu") gpu(below, at);
      if (below.name == "nic") nets(below, at);
    }
  }

  void gpu(const XmlElement& element, std::size_t at) {
    Gpu& gpu = parts_.gpus.back();
    gpu.sm = to_int(element["sm"], 0);
    // A dump of NCCL's lists every NVLink that it found; a file that clouds ship has no <gpu>.
    parts_.nvlink_known = true;
    for (const std::size_t child : element.children) {
      const XmlElement& link = document_.elements[child];
      if (link.name == "c2c") {
        gpu.c2c_links = std::max(1, to_int(link["count"], 1));
        gpu.c2c_gbytes = leading_number(link["bw"]) / 1000;
      }
      if (link.name != "nvlink" && link.name != "xgmi") continue;  // AMD's, in RCCL's files
      constexpr std::uint32_t kPower9 = 0x068001;                  // NVLink to the CPU
      const std::uint32_t target_class = to_hex(link["tclass"]) >> 16;
      if (to_hex(link["tclass"]) == kPower9) continue;
      // "fffffff:ffff:ff.0" and the like: an NVSwitch that a hypervisor hides.
      const bool to_switch = target_class == 0x06 || link["target"].starts_with("ffff");
      const int count = to_int(link["count"], 0);
      if (to_switch) {
        parts_.nvlinks.push_back({at, kNone, count, 0});
      } else if (link.name == "xgmi" || is_gpu_class(to_hex(link["tclass"]), vendor::kNvidia)) {
        pending_.push_back({at, std::string(link["target"]), count, link.name == "xgmi"});
      }
    }
  }

  void nets(const XmlElement& element, std::size_t at) {
    for (const std::size_t child : element.children) {
      const XmlElement& net = document_.elements[child];
      if (net.name != "net") continue;
      const std::string name(net["name"]);
      const std::string_view guid = net["guid"];
      if (at == kNone && (guid.empty() || to_hex(guid) == 0) && guid.size() <= 3) {
        outside_ += (outside_.empty() ? "" : ", ") + name;  // NCCL's sockets
        continue;
      }
      Nic nic;
      nic.node = at;
      nic.is_virtual = at == kNone;
      nic.port = to_int(net["port"], 0);
      nic.gigabits = leading_number(net["speed"]) / 1000;
      nic.name = !name.empty() ? name
                 : at != kNone ? parts_.nodes[at].name
                               : fmt::format("net{}", net["dev"]);
      parts_.nics.push_back(nic);
    }
  }

  Result<void> join_nvlinks() {
    for (const PendingLink& link : pending_) {
      const auto bus = parse_bus_id(link.target);
      const auto to = std::find_if(parts_.nodes.begin(), parts_.nodes.end(),
                                   [&](const PciNode& node) { return bus && node.bus == bus; });
      if (to == parts_.nodes.end()) continue;  // a GPU that this file leaves out
      parts_.nvlinks.push_back({link.gpu, static_cast<std::size_t>(to - parts_.nodes.begin()),
                                link.count, 0, link.xgmi});
    }
    return {};
  }

  const XmlDocument& document_;
  Parts parts_;
  std::vector<PendingLink> pending_;
  std::string outside_;
  std::map<std::string, std::size_t> lines_;  // of each bus id
  int unnamed_ = 0;
};

}  // namespace

Result<Topology> parse_nccl_xml(std::string_view text, std::string source) {
  const XmlDocument document = GDRX_TRY(parse_xml(text, source));
  return Topology::make(GDRX_TRY(NcclReader(document, std::move(source)).read()));
}

}  // namespace gdrx::topo
