// SPDX-License-Identifier: Apache-2.0
#include "topo/read/sysfs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/cpu_list.hpp"
#include "topo/model/pci_vendor.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::topo {
namespace {

namespace fs = std::filesystem;

constexpr int kPortActive = 4;  // "4: ACTIVE", InfiniBand's number for it

bool is_root_name(std::string_view name) {
  return name.starts_with("pci") && name.size() > 5 && name.find(':') != name.npos &&
         name.find('.') == name.npos;
}

// "../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0": host bridge, bridges, the device. A
// VMD's own host bridge below a device is skipped: its drives and cards hang below that device.
std::vector<std::string> pci_components(const std::string& link) {
  std::vector<std::string> all;
  for (const auto& part : fs::path(link)) {
    const std::string name = part.string();
    const bool root = is_root_name(name);
    if (all.empty() ? root : parse_bus_id(name).has_value()) all.push_back(name);
  }
  return all;
}

class SysfsReader {
 public:
  explicit SysfsReader(const HostFiles& files) : files_(files) { parts_.source = "this host"; }

  Parts read(bool numa) {
    for (const std::string& name : files_.list("sys/bus/pci/devices")) {
      if (parse_bus_id(name)) pci(name);
    }
    for (const std::string& name : files_.list("sys/class/infiniband")) rdma(name);
    pair_data_direct();
    const std::string cpuinfo = files_.read("proc/cpuinfo");
    // Only x86 has the flag; QEMU's root ports tell on any processor.
    parts_.in_vm = qemu_ || cpuinfo.find(" hypervisor") != cpuinfo.npos;
    if (numa) parts_.numa = sysfs_numa(files_);
    notes();
    return std::move(parts_);
  }

 private:
  void notes() {
    if (files_.list("sys/bus/pci/devices").empty()) {
      parts_.notes.push_back("sys/bus/pci/devices is empty or hidden: no PCI device can be seen");
    }
    if (hidden_ > 0) {
      parts_.notes.push_back(
          fmt::format("{} PCI devices hide where they sit (sysfs is masked?)", hidden_));
    }
    constexpr const char* kVirtual = "var/run/nvidia-topologyd/virtualTopology.xml";
    if (files_.exists(kVirtual)) {
      parts_.notes.push_back(
          fmt::format("the cloud describes this machine in /{}: give that file", kVirtual));
    }
  }

  std::size_t add_root(const std::string& name) {
    const auto known = by_name_.find(name);
    if (known != by_name_.end()) return known->second;
    PciNode root;
    root.kind = NodeKind::root;
    root.name = name;
    parts_.nodes.push_back(root);
    return by_name_[name] = parts_.nodes.size() - 1;
  }

  // Adds the device and everything above it, once.
  std::size_t pci(const std::string& name) {
    const BusId bus = *parse_bus_id(name);
    const auto known = by_name_.find(to_string(bus));
    if (known != by_name_.end()) return known->second;
    const fs::path folder = fs::path("sys/bus/pci/devices") / name;
    const std::vector<std::string> way = pci_components(files_.link(folder));
    std::size_t parent = kNone;
    if (way.size() >= 2) {
      parent = way.size() == 2 ? add_root(way[0]) : pci(way[way.size() - 2]);
    }
    PciNode node = attributes(folder, bus);
    node.parent = parent;
    if (parent == kNone) ++hidden_;
    parts_.nodes.push_back(node);
    const std::size_t at = parts_.nodes.size() - 1;
    by_name_[node.name] = at;
    if (node.kind == NodeKind::device && is_gpu_class(node.class_code, node.vendor)) {
      Gpu gpu;
      gpu.node = at;
      gpu.model = information_of(node.name, "Model:");
      gpu.uuid = information_of(node.name, "GPU UUID:");
      parts_.gpus.push_back(gpu);
    }
    return at;
  }

  PciNode attributes(const fs::path& folder, const BusId& bus) {
    const auto hex = [&](const char* file) { return to_hex(files_.read(folder / file)); };
    PciNode node;
    node.bus = bus;
    node.name = to_string(bus);
    node.class_code = hex("class");
    node.vendor = static_cast<std::uint16_t>(hex("vendor"));
    node.device = static_cast<std::uint16_t>(hex("device"));
    node.subsystem_vendor = static_cast<std::uint16_t>(hex("subsystem_vendor"));
    node.subsystem_device = static_cast<std::uint16_t>(hex("subsystem_device"));
    if (is_bridge_class(node.class_code)) node.kind = NodeKind::bridge;
    qemu_ |= node.kind == NodeKind::bridge && node.vendor == vendor::kQemu;
    node.numa = to_int(files_.read(folder / "numa_node"), -1);
    node.cpus = files_.read(folder / "local_cpulist");
    // An idle GPU lowers its rate, never its width: the rate that both ends can do counts, and the
    // width that was trained. The port above is a node of the path too, so its limits count as
    // well.
    node.link.gigatransfers = leading_number(files_.read(folder / "max_link_speed"));
    if (node.link.gigatransfers <= 0) {
      node.link.gigatransfers = leading_number(files_.read(folder / "current_link_speed"));
    }
    node.link.width = to_int(files_.read(folder / "current_link_width"), 0);
    if (node.link.width <= 0 || node.link.width > 32) {
      node.link.width = to_int(files_.read(folder / "max_link_width"), 0);
    }
    if (node.link.width > 32) node.link.width = 0;  // 255: the kernel could not read it
    const std::string group = files_.link(folder / "iommu_group");
    if (!group.empty()) node.iommu_group = to_int(fs::path(group).filename().string(), -1);
    node.physical_function =
        parse_bus_id(fs::path(files_.link(folder / "physfn")).filename().string());
    return node;
  }

  std::string information_of(const std::string& name, std::string_view word) const {
    const std::string text =
        files_.read(fs::path("proc/driver/nvidia/gpus") / name / "information");
    const auto at = text.find(word);
    if (at == text.npos) return {};
    const std::size_t from = at + word.size();
    return std::string(trim(std::string_view(text).substr(from, text.find('\n', at) - from)));
  }

  void rdma(const std::string& name) {
    const fs::path folder = fs::path("sys/class/infiniband") / name;
    Nic nic;
    nic.name = name;
    std::vector<std::string> way = pci_components(files_.link(folder));
    if (way.empty()) {
      const std::string device = files_.link(folder / "device");
      const std::string last = fs::path(device).filename().string();
      if (parse_bus_id(last)) way = {"", last};
    }
    if (way.size() >= 2) {
      const auto known = by_name_.find(to_string(*parse_bus_id(way.back())));
      if (known != by_name_.end()) nic.node = known->second;
    }
    // soft-RoCE and siw have a "parent" netdev and no device.
    nic.is_virtual = nic.node == kNone && way.empty() &&
                     (files_.exists(folder / "parent") || !files_.exists(folder / "device"));
    for (const std::string& port : files_.list(folder / "ports")) {
      const fs::path at = folder / "ports" / port;
      const double rate = leading_number(files_.read(at / "rate"));
      const int state = static_cast<int>(leading_number(files_.read(at / "state")));
      const std::optional<bool> active =
          state == 0 ? std::nullopt : std::optional(state == kPortActive);
      // Of a card's ports the one that is up counts, then the fastest.
      const bool better = active == true && nic.active != true;
      const bool worse = active != true && nic.active == true;
      if (nic.port == 0 || better || (!worse && rate > nic.gigabits)) {
        nic.port = to_int(port, 0);
        nic.gigabits = rate;
        nic.link_layer = files_.read(at / "link_layer");
        nic.active = active;
      }
    }
    // A virtual device reports a rate that means nothing.
    if (nic.is_virtual) nic.gigabits = 0;
    parts_.nics.push_back(nic);
  }

  // ConnectX-8 and its kin move data by a second function (15b3:2100) on the GPU's switch. Reading
  // the product data needs root; without it the pair stays unknown, and is said so.
  void pair_data_direct() {
    constexpr std::uint16_t kDataDirect = 0x2100;
    std::map<std::string, std::size_t> by_card;
    bool unread = false;
    for (std::size_t i = 0; i < parts_.nodes.size(); ++i) {
      const PciNode& node = parts_.nodes[i];
      if (node.vendor != vendor::kMellanox || node.device != kDataDirect) continue;
      const std::string card = v3_of(node.name);
      unread |= card.empty();
      if (!card.empty()) by_card[card] = i;
    }
    for (Nic& nic : parts_.nics) {
      if (by_card.empty() || nic.node == kNone) continue;
      const auto found = by_card.find(v3_of(parts_.nodes[nic.node].name));
      if (found != by_card.end()) nic.dma_node = found->second;
    }
    if (unread) {
      parts_.notes.push_back(
          "Data Direct functions are there, but which NIC's they are can only root read (vpd)");
    }
  }

  std::string v3_of(const std::string& name) const {
    return vpd_v3(files_.read(fs::path("sys/bus/pci/devices") / name / "vpd"));
  }

  const HostFiles& files_;
  Parts parts_;
  std::map<std::string, std::size_t> by_name_;
  int hidden_ = 0;
  bool qemu_ = false;
};

}  // namespace

Parts sysfs_parts(const HostFiles& files, bool numa) { return SysfsReader(files).read(numa); }

std::string vpd_v3(const std::string& vpd) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(vpd[at]); };
  // Large resources: tag, two bytes of length, and in 0x90 and 0x91 fields of key, length, value.
  std::size_t at = 0;
  while (at + 3 <= vpd.size() && (byte(at) & 0x80u) != 0) {
    const std::size_t length = byte(at + 1) | static_cast<std::size_t>(byte(at + 2)) << 8;
    const std::size_t end = std::min(vpd.size(), at + 3 + length);
    const bool fields = byte(at) == 0x90 || byte(at) == 0x91;
    for (std::size_t field = at + 3; fields && field + 3 <= end;) {
      const std::size_t size = byte(field + 2);
      if (field + 3 + size > end) break;
      if (vpd.compare(field, 2, "V3") == 0) return vpd.substr(field + 3, size);
      field += 3 + size;
    }
    at += 3 + length;
  }
  return {};
}

namespace {

// Each core once, by its lowest CPU; none where the kernel does not tell a CPU's siblings.
std::vector<std::string> cores_of(const HostFiles& files, const std::string& cpus) {
  std::vector<std::string> cores;
  for (const int cpu : cpus_of_list(cpus)) {
    const auto folder = fmt::format("sys/devices/system/cpu/cpu{}/topology/", cpu);
    std::string siblings = files.read(folder + "thread_siblings_list");
    if (siblings.empty()) siblings = cpus_of_mask(files.read(folder + "thread_siblings"));
    if (siblings.empty()) return {};
    const std::vector<int> all = cpus_of_list(siblings, kMostOfCore);
    if (!all.empty() && all.front() == cpu) cores.push_back(siblings);
  }
  return cores;
}

// A kernel without NUMA: its CPUs are one node's.
std::vector<NumaNode> one_node(const HostFiles& files) {
  NumaNode node;
  node.id = 0;
  node.cpus = files.read("sys/devices/system/cpu/online");
  if (node.cpus.empty()) {
    std::vector<int> cpus;
    for (const std::string& name : files.list("sys/devices/system/cpu")) {
      const bool cpu = name.starts_with("cpu") && to_int(name.substr(3), -1) >= 0;
      if (cpu) cpus.push_back(to_int(name.substr(3), -1));
    }
    std::sort(cpus.begin(), cpus.end());
    node.cpus = list_of_cpus(cpus);
  }
  if (node.cpus.empty()) return {};
  node.cores = cores_of(files, node.cpus);
  return {node};
}

}  // namespace

std::vector<NumaNode> sysfs_numa(const HostFiles& files) {
  std::vector<NumaNode> all;
  const fs::path folder = "sys/devices/system/node";
  for (const std::string& name : files.list(folder)) {
    if (!name.starts_with("node")) continue;
    NumaNode node;
    node.id = to_int(std::string_view(name).substr(4), -1);
    if (node.id < 0) continue;
    node.cpus = files.read(folder / name / "cpulist");
    std::istringstream distances(files.read(folder / name / "distance"));
    for (int distance = 0; distances >> distance;) node.distances.push_back(distance);
    node.cores = cores_of(files, node.cpus);
    const int first = static_cast<int>(leading_number(node.cpus));
    if (!node.cpus.empty()) {
      node.package =
          to_int(files.read(fmt::format("sys/devices/system/cpu/cpu{}/topology/physical_package_id",
                                        first)),
                 -1);
    }
    all.push_back(node);
  }
  if (all.empty()) all = one_node(files);
  return all;
}

}  // namespace gdrx::topo
