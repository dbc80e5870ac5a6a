// SPDX-License-Identifier: Apache-2.0
// Which files of a host a snapshot has: what the readers and the checks look at, and no more.
#include <fmt/format.h>

#include <array>
#include <set>

#include "base/cpu_list.hpp"
#include "doctor/checks/cgroup.hpp"
#include "doctor/host_facts.hpp"
#include "doctor/snapshot/mask.hpp"
#include "doctor/snapshot/probes_text.hpp"
#include "gdrx/snapshot.hpp"
#include "topo/read/field_text.hpp"
#include "topo/read/links_text.hpp"
#include "topo/read/sysfs.hpp"
#include "topo/read/tar.hpp"

namespace gdrx::doctor {
namespace {

namespace fs = std::filesystem;
using topo::FileTree;

constexpr std::array kPciFiles{"class",
                               "vendor",
                               "device",
                               "subsystem_vendor",
                               "subsystem_device",
                               "numa_node",
                               "local_cpulist",
                               "current_link_speed",
                               "current_link_width",
                               "max_link_speed",
                               "max_link_width",
                               "resource",
                               "aer_dev_correctable",
                               "aer_dev_nonfatal",
                               "aer_dev_fatal"};
constexpr std::array kPortFiles{"state", "phys_state", "rate", "link_layer"};
// Whole files that hold nothing of anybody's.
constexpr std::array kPlain{"proc/sys/kernel/osrelease",
                            "sys/devices/system/cpu/online",
                            "proc/sys/kernel/numa_balancing",
                            "proc/sys/vm/nr_hugepages",
                            "proc/sys/vm/max_map_count",
                            "proc/sys/net/ipv4/conf/all/arp_ignore",
                            "proc/sys/net/ipv4/conf/all/arp_announce",
                            "proc/driver/nvidia/version",
                            "proc/driver/nvidia/params",
                            "sys/kernel/mm/transparent_hugepage/enabled",
                            "etc/os-release",
                            "var/run/nvidia-topologyd/virtualTopology.xml"};
constexpr std::array kModules{"nvidia",  "nvidia_uvm", "nvidia_peermem", "nv_peer_mem",
                              "gdrdrv",  "ib_core",    "ib_uverbs",      "mlx5_core",
                              "mlx5_ib", "rdma_rxe",   "rdma_ucm"};

class Capture {
 public:
  Capture(const topo::HostFiles& files, bool keep_names) : files_(files), keep_(keep_names) {
    asked.shown = [this](const std::string& name) { return shown(name); };
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void host() {
    for (const std::string& name : files_.list("sys/bus/pci/devices")) pci(name);
    for (const std::string& name : files_.list("sys/class/infiniband")) rdma(name);
    for (const std::string& name : files_.list("sys/class/infiniband_verbs")) {
      const fs::path folder = linked("sys/class/infiniband_verbs", name);
      copy_name(folder / "ibdev");
    }
    for (const std::string& name : files_.list("sys/class/net")) interface(name);
    for (const char* path : kPlain) copy(path);
    modules();
    processors();
    procfs();
    dev();
  }
  void add(const fs::path& path, std::string_view text) {
    if (!seen_.insert(path.string()).second) return;
    tar_.add(shown(path.string()), FileTree::Kind::file, text);
  }
  Asked asked;
  Result<std::string> finish() { return tar_.finish(); }

 private:
  std::string shown(const std::string& name) { return keep_ ? name : mask_.name(name); }
  // A file that holds the name of a device.
  void copy_name(const fs::path& path) {
    const std::string text = files_.read(path);
    if (!text.empty()) add(path, shown(text) + "\n");
  }
  void copy(const fs::path& path) {
    if (!files_.exists(path)) return;
    const std::string text = files_.read(path);
    if (!text.empty()) add(path, text + "\n");
  }
  void link(const fs::path& path, const std::string& target) {
    if (target.size() > 1000 || !seen_.insert(path.string()).second) return;
    tar_.add(shown(path.string()), FileTree::Kind::link, shown(target));
  }
  // "sys/class/net", "eth0": keeps the link and gives the folder that it leads to.
  fs::path linked(const fs::path& folder, const std::string& name) {
    const std::string target = files_.link(folder / name);
    if (target.empty()) return folder / name;
    const fs::path real = fs::path(target).is_absolute()
                              ? fs::path(target.substr(1)).lexically_normal()
                              : (folder / target).lexically_normal();
    if (!real.native().starts_with("sys/")) return folder / name;
    link(folder / name, target);
    return real;
  }

  void pci(const std::string& name) {
    if (!topo::parse_bus_id(name)) return;
    const fs::path folder = linked("sys/bus/pci/devices", name);
    for (const char* file : kPciFiles) copy(folder / file);
    for (const char* each : {"iommu_group", "physfn"}) {
      const std::string target = files_.link(folder / each);
      if (!target.empty()) link(folder / each, target);
    }
    const std::uint32_t kind = topo::to_hex(files_.read(folder / "class")) >> 16;
    constexpr std::array<std::uint32_t, 4> kRead{0x02, 0x03, 0x06, 0x08};
    if (std::find(kRead.begin(), kRead.end(), kind) == kRead.end()) return;
    const std::string config = files_.bytes(folder / "config", 4096);
    if (!config.empty()) add(folder / "config", keep_ ? config : Mask::config(config));
    const std::string vpd = files_.bytes(folder / "vpd", 4096);
    const std::string kept = keep_ ? vpd : mask_.vpd(topo::vpd_v3(vpd));
    if (!kept.empty()) add(folder / "vpd", kept);
  }

  void port(const fs::path& folder) {
    for (const char* file : kPortFiles) copy(folder / file);
    const std::string lid = files_.read(folder / "lid");
    if (!lid.empty()) add(folder / "lid", (keep_ ? lid : mask_.lid(lid)) + "\n");
    for (const std::string& index : files_.list(folder / "gids")) {
      const std::string gid = files_.read(folder / "gids" / index);
      if (gid.find_first_not_of("0:") == gid.npos) continue;  // an empty slot
      add(folder / "gids" / index, (keep_ ? gid : mask_.gid(gid)) + "\n");
    }
    const fs::path attributes = folder / "gid_attrs";
    for (const std::string& index : files_.list(attributes / "types")) {
      copy(attributes / "types" / index);
    }
    for (const std::string& index : files_.list(attributes / "ndevs")) {
      copy_name(attributes / "ndevs" / index);
    }
    for (const char* kind : {"counters", "hw_counters"}) {
      for (const std::string& name : files_.list(folder / kind)) copy(folder / kind / name);
    }
  }
  void rdma(const std::string& name) {
    const fs::path folder = linked("sys/class/infiniband", name);
    for (const char* file : {"board_id", "fw_ver", "hca_type", "node_type"}) {
      copy(folder / file);
    }
    copy_name(folder / "parent");
    const std::string device = files_.link(folder / "device");
    if (!device.empty()) link(folder / "device", device);
    for (const std::string& number : files_.list(folder / "ports")) port(folder / "ports" / number);
  }
  void interface(const std::string& name) {
    constexpr std::size_t kMostAsked = 256;
    if (asked.interfaces.size() < kMostAsked) asked.interfaces.push_back(name);
    const fs::path folder = linked("sys/class/net", name);
    for (const char* file : {"mtu", "operstate", "carrier", "speed", "dev_port"}) {
      copy(folder / file);
    }
    for (const char* side : {"ecn/roce_np/enable", "ecn/roce_rp/enable"}) {
      for (const std::string& priority : files_.list(folder / side)) copy(folder / side / priority);
    }
  }
  void modules() {
    for (const char* module : kModules) {
      const fs::path folder = fs::path("sys/module") / module;
      if (!files_.exists(folder)) continue;
      add(folder / "gdrx-seen", "\n");  // a module without a version is there, too
      copy(folder / "version");
      for (const std::string& name : files_.list(folder / "parameters")) {
        copy(folder / "parameters" / name);
      }
    }
    for (const char* peer : {"nv_mem", "nv_mem_nc"}) {
      copy(fs::path("sys/kernel/mm/memory_peers") / peer / "version");
    }
    for (const std::string& unit : files_.list("sys/class/iommu")) {
      add(fs::path("sys/class/iommu") / unit / "gdrx-seen", "\n");
    }
    for (const std::string& group : files_.list("sys/kernel/iommu_groups")) {
      copy(fs::path("sys/kernel/iommu_groups") / group / "type");
    }
  }
  void processors() {
    for (const std::string& node : files_.list("sys/devices/system/node")) {
      const fs::path folder = fs::path("sys/devices/system/node") / node;
      const std::string cpus = files_.read(folder / "cpulist");
      copy(folder / "cpulist");
      copy(folder / "distance");
      if (cpus.empty()) continue;
      copy(fmt::format("sys/devices/system/cpu/cpu{}/topology/physical_package_id",
                       static_cast<int>(topo::leading_number(cpus))));
      for (const int cpu : cpus_of_list(cpus)) {
        copy(fmt::format("sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
      }
    }
    for (const std::string& policy : files_.list("sys/devices/system/cpu/cpufreq")) {
      copy(fs::path("sys/devices/system/cpu/cpufreq") / policy / "scaling_governor");
    }
    // Of the first processor: its name, and flags of which only one matters here.
    const std::string info = files_.read("proc/cpuinfo");
    std::string kept;
    for (const char* key : {"vendor_id", "model name"}) {
      const auto at = info.find(key);
      if (at != info.npos) kept += info.substr(at, info.find('\n', at) - at) + "\n";
    }
    add("proc/cpuinfo",
        kept + (info.find(" hypervisor") != info.npos ? "flags\t: hypervisor\n" : "flags\t:\n"));
  }
  void procfs() {
    for (const std::string& gpu : files_.list("proc/driver/nvidia/gpus")) {
      const fs::path folder = fs::path("proc/driver/nvidia/gpus") / gpu;
      const std::string text = files_.read(folder / "information");
      const auto at = text.find("Model:");
      if (at != text.npos) {
        add(folder / "information", text.substr(at, text.find('\n', at) - at) + "\n");
      }
      copy(folder / "numa_status");
    }
    const std::string arguments = files_.read("proc/cmdline");
    add("proc/cmdline", (keep_ ? arguments : Mask::command_line(arguments)) + "\n");
    // 8 MB of symbols, for one question.
    constexpr const char* kSymbol = "ib_register_peer_memory_client";
    const std::string symbols = files_.bytes("proc/kallsyms", std::size_t{64} << 20);
    if (!symbols.empty()) {
      const bool there = symbols.find(kSymbol) != symbols.npos;
      add("proc/kallsyms",
          there ? fmt::format("0000000000000000 T {}\n", kSymbol) : "0000000000000000 T _text\n");
    }
    const std::string first = files_.read("proc/1/cgroup");
    for (const char* word : {"docker", "kubepods", "containerd", "lxc", "libpod"}) {
      if (first.find(word) != first.npos) add("proc/1/cgroup", fmt::format("0::/{}\n", word));
    }
    for (const char* file : {".dockerenv", "run/.containerenv"}) {
      if (files_.exists(file)) add(file, "\n");
    }
    add("proc/self/cgroup", "0::/\n");  // whose limits are put at the mount itself
    for (const char* file : {"rdma.max", "memory.max", "memory.limit_in_bytes"}) {
      const std::string_view controller = std::string_view(file).substr(0, file[0] == 'r' ? 4 : 6);
      const std::string path = cgroup_file(files_, controller, file);
      if (!path.empty()) add(fs::path("sys/fs/cgroup") / file, files_.read(path) + "\n");
    }
  }
  void dev() {
    for (const std::string& name : files_.list("dev")) {
      if (name.starts_with("nvidia")) node(name);
    }
    for (const std::string& name : files_.list("dev/infiniband")) node("infiniband/" + name);
  }
  void node(const std::string& name) {
    if (asked.nodes.size() > 1024) return;
    add("dev/" + name, {});
    asked.nodes.push_back("/dev/" + name);
  }

  const topo::HostFiles& files_;
  bool keep_;
  Mask mask_;
  topo::TarWriter tar_{topo::Packing::gzip};
  std::set<std::string> seen_;
};

}  // namespace

Result<std::string> capture(const Host& host, const CaptureOptions& options) {
  const topo::HostFiles files =
      host.files ? topo::HostFiles(host.files) : topo::HostFiles(host.root);
  const topo::Topology topology = GDRX_TRY(topo::discover({host.root, true, host.files}));
  Capture capture(files, options.keep_names);
  capture.add("gdrx/version", "1\n");
  capture.host();
  // The variable's path is masked; that the file is there is kept.
  for (const std::string& entry : host.probes.environment()) {
    if (options.keep_names || !entry.starts_with("NCCL_TOPO_FILE=/")) continue;
    if (files.exists(entry.substr(16))) capture.add("topology.xml", "\n");
  }
  const std::string links = topo::links_text(topology);
  if (!links.empty()) capture.add(topo::kLinksFile, links);
  capture.add(kProbesFile, probes_text(host.probes, capture.asked, options.keep_names));
  return capture.finish();
}

Host host_of(const topo::Snapshot& snapshot) {
  const topo::HostFiles files(snapshot.files);
  Host host{snapshot.source, file_probes(files), snapshot.files};
  host.probes = probes_of_text(std::move(host.probes), files.read(kProbesFile));
  return host;
}

}  // namespace gdrx::doctor
