// SPDX-License-Identifier: Apache-2.0
// A host as a tree of files and answers, of our own making: a good one, which a test then breaks.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "gdrx/doctor.hpp"

namespace gdrx::doctor::test {

namespace fs = std::filesystem;

// Two sockets; below one PCIe switch of the first a GPU, an InfiniBand NIC and a RoCE NIC.
inline const std::string kPort = "pci0000:10/0000:10:01.0";
inline const std::string kUp = kPort + "/0000:11:00.0";
inline const std::string kGpu = kUp + "/0000:12:00.0/0000:13:00.0";
inline const std::string kIb = kUp + "/0000:12:01.0/0000:14:00.0";
inline const std::string kRoce = kUp + "/0000:12:02.0/0000:15:00.0";
inline constexpr const char* kVerbs0 = "sys/class/infiniband/mlx5_0";
inline constexpr const char* kVerbs1 = "sys/class/infiniband/mlx5_1";

/// Answers of probes; what is not set here is read from the tree.
struct Answers {
  std::map<Resource, std::uint64_t> limits{{Resource::memlock, kUnlimited},
                                           {Resource::nofile, 65536}};
  std::uint64_t capabilities = 0;
  std::uint64_t shm = std::uint64_t{64} << 30;
  std::map<std::string, int> open_errno;
  std::string affinity = "0-63";
  std::vector<std::string> environment;
  Result<CudaFacts> cuda = CudaFacts{12040, {{"0000:13:00.0", true, true, true, 1, 200, {}}}};
  Result<NvmlFacts> nvml =
      NvmlFacts{"550.54.15",
                {{"0000:13:00.0", std::uint64_t{256} << 30, std::uint64_t{255} << 30,
                  std::uint64_t{141} << 30, false, true}}};
  Result<VerbsFacts> verbs =
      VerbsFacts{true, {{"mlx5_0", 0, EBADF, 5, 5}, {"mlx5_1", 0, EBADF, 5, 5}}};
  std::map<std::string, Result<Dcb>> dcb{{"eth1", Dcb{1u << 3, 0, 0, true}}};
  Result<std::vector<Proof>> proofs =
      std::vector<Proof>{{"mlx5_0", 1, {}, "host memory", {}, 0},
                         {"mlx5_0", 1, "0000:13:00.0", "dma-buf", {}, 0},
                         {"mlx5_0", 1, "0000:13:00.0", "nvidia-peermem", "ibv_reg_mr", EFAULT}};
};

class HostTree {
 public:
  HostTree() {
    static int number = 0;
    root_ = fs::path(::testing::TempDir()) / fmt::format("gdrx-doctor-{}-{}", getpid(), number++);
    fs::remove_all(root_);
    good();
  }
  ~HostTree() { fs::remove_all(root_); }
  HostTree(const HostTree&) = delete;
  HostTree& operator=(const HostTree&) = delete;

  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text;
  }
  void remove(const fs::path& path) const { fs::remove_all(root_ / path); }
  fs::path device(const std::string& chain) const { return fs::path("sys/devices") / chain; }
  std::string root() const { return root_.string(); }

  /// A register of a function's configuration space, little-endian.
  void config(const std::string& chain, std::size_t at, unsigned value) const {
    std::fstream file(root_ / device(chain) / "config",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(value & 0xff)).put(static_cast<char>(value >> 8));
  }
  void hide_config(const std::string& chain) const {
    fs::resize_file(root_ / device(chain) / "config", 64);
  }
  void group(const std::string& chain, int number, const std::string& type) const {
    const fs::path link = root_ / device(chain) / "iommu_group";
    fs::remove(link);
    fs::create_symlink(fmt::format("../../kernel/iommu_groups/{}", number), link);
    write(fmt::format("sys/kernel/iommu_groups/{}/type", number), type);
  }
  /// Puts the GPU elsewhere on the PCI tree.
  void move_gpu(const std::string& chain, int numa) const {
    remove(fs::path("sys/bus/pci/devices") / fs::path(kGpu).filename());
    remove(device(kGpu));
    pci(fs::path(chain).parent_path().string(), "0x8086", "0x060400");
    pci(chain, "0x10de", "0x030200");
    write(device(chain) / "numa_node", std::to_string(numa));
  }
  /// As a virtual machine shows its devices: all on the root bus.
  void flatten() const {
    remove("sys/bus/pci/devices");
    remove("sys/class/infiniband");
    remove("sys/devices/pci0000:10");
    pci("pci0000:00/0000:00:05.0", "0x10de", "0x030200");
    pci("pci0000:00/0000:00:06.0", "0x15b3", "0x020700");
    for (const char* name : {"5", "6"}) {
      write(device(fmt::format("pci0000:00/0000:00:0{}.0", name)) / "numa_node", "-1");
    }
    nic("pci0000:00/0000:00:06.0", 0, "InfiniBand");
  }

  Host host() const {
    Probes probes = file_probes(root());
    const Answers a = answers;
    probes.libraries_asked = true;
    probes.limit = [a](Resource which) -> std::optional<std::uint64_t> {
      const auto found = a.limits.find(which);
      return found == a.limits.end() ? std::nullopt : std::optional(found->second);
    };
    probes.capabilities = [a] { return std::optional(a.capabilities); };
    probes.file_system_bytes = [a](const std::string&) { return std::optional(a.shm); };
    const auto exists = probes.open_errno;
    probes.open_errno = [a, exists](const std::string& path) {
      const auto found = a.open_errno.find(path);
      return found == a.open_errno.end() ? exists(path) : found->second;
    };
    probes.affinity = [a] { return a.affinity; };
    probes.environment = [a] { return a.environment; };
    probes.cuda = [a] { return a.cuda; };
    probes.nvml = [a] { return a.nvml; };
    probes.verbs = [a] { return a.verbs; };
    probes.dcb = [a](const std::string& interface) -> Result<Dcb> {
      const auto found = a.dcb.find(interface);
      if (found != a.dcb.end()) return found->second;
      return fail(Errc::unsupported, "dcbnl IEEE_GET", EOPNOTSUPP);
    };
    probes.proofs = [a] { return a.proofs; };
    return {root(), probes};
  }
  Report diagnose() const {
    auto report = doctor::diagnose(host());
    EXPECT_TRUE(report) << report.error().what;
    return report ? *report : Report();
  }

  Answers answers;

 private:
  void pci(const std::string& chain, const char* vendor, const char* kind) const {
    const fs::path at = device(chain);
    write(at / "class", kind);
    write(at / "vendor", vendor);
    write(at / "device", "0x0001");
    write(at / "numa_node", "0");
    for (const char* which : {"current", "max"}) {
      write(at / fmt::format("{}_link_speed", which), "32.0 GT/s PCIe");
      write(at / fmt::format("{}_link_width", which), "16");
    }
    for (const char* which : {"correctable", "nonfatal", "fatal"}) {
      write(at / fmt::format("aer_dev_{}", which), "RxErr 0\nTOTAL_ERR_X 0\n");
    }
    // PCI Express at 0x60: reads of 4096 bytes, relaxed ordering. Extended: at 0x100 something,
    // at 0x150 ACS, all off, and at 0x170 ATS, on.
    write(at / "config", std::string(4096, '\0'));
    const auto set = [&](std::size_t offset, unsigned value) { config(chain, offset, value); };
    set(0x34, 0x60);
    set(0x60, 0x0010);
    set(0x68, 0x5010);
    set(0x100, 0x0001);
    set(0x102, 0x1501);
    set(0x150, 0x000d);
    set(0x152, 0x1701);
    set(0x170, 0x000f);
    set(0x172, 0x0001);
    set(0x176, 0x8000);
    fs::create_directories(root_ / "sys/bus/pci/devices");
    fs::create_directory_symlink("../../../devices/" + chain,
                                 root_ / "sys/bus/pci/devices" / fs::path(chain).filename());
  }
  void nic(const std::string& chain, int number, const char* layer) const {
    const std::string name = fmt::format("mlx5_{}", number);
    const fs::path at = device(chain) / "infiniband" / name;
    const fs::path port = at / "ports/1";
    write(port / "rate", "400 Gb/sec (4X NDR)");
    write(port / "link_layer", layer);
    write(port / "state", "4: ACTIVE");
    write(port / "phys_state", "5: LinkUp");
    for (const char* file :
         {"counters/link_downed", "counters/symbol_error", "hw_counters/out_of_sequence",
          "hw_counters/packet_seq_err", "hw_counters/rnr_nak_retry_err", "hw_counters/np_cnp_sent",
          "hw_counters/np_ecn_marked_roce_packets", "hw_counters/rp_cnp_handled",
          "hw_counters/rp_cnp_ignored"}) {
      write(port / file, "0");
    }
    write(at / "board_id", "MT_0000000838");
    write(at / "fw_ver", "28.43.1014");
    fs::create_directory_symlink("../..", root_ / at / "device");
    fs::create_directories(root_ / "sys/class/infiniband");
    fs::create_directory_symlink(fmt::format("../../devices/{}/infiniband/{}", chain, name),
                                 root_ / "sys/class/infiniband" / name);
    write(fmt::format("sys/class/infiniband_verbs/uverbs{}/ibdev", number), name);
    write(fmt::format("dev/infiniband/uverbs{}", number), "");
  }
  void good() {
    pci(kPort, "0x8086", "0x060400");
    pci(kUp, "0x1000", "0x060400");
    for (const char* down : {"/0000:12:00.0", "/0000:12:01.0", "/0000:12:02.0"}) {
      pci(kUp + down, "0x1000", "0x060400");
    }
    pci(kGpu, "0x10de", "0x030200");
    pci(kIb, "0x15b3", "0x020700");
    pci(kRoce, "0x15b3", "0x020000");
    nic(kIb, 0, "InfiniBand");
    nic(kRoce, 1, "Ethernet");
    const fs::path port = device(kRoce) / "infiniband/mlx5_1/ports/1";
    write(port / "gids/0", "fe80:0000:0000:0000:0e42:a1ff:fe00:0001");
    write(port / "gids/3", "0000:0000:0000:0000:0000:ffff:c0a8:0a01");
    write(port / "gids/7", "0000:0000:0000:0000:0000:0000:0000:0000");
    for (const char* index : {"0", "3"}) {
      write(port / "gid_attrs/types" / index, "RoCE v2");
      write(port / "gid_attrs/ndevs" / index, "eth1");
    }
    write("sys/class/net/eth1/mtu", "9000");
    write("sys/class/net/eth1/ecn/roce_np/enable/3", "1");
    write("dev/infiniband/rdma_cm", "");
    for (const char* node : {"nvidiactl", "nvidia-uvm", "nvidia0"})
      write(fs::path("dev") / node, "");
    write("sys/module/nvidia/version", "550.54.15");
    write("sys/module/nvidia_peermem/version", "550.54.15");
    write("sys/module/ib_core/parameters/netns_mode", "Y");
    write("proc/driver/nvidia/version",
          "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15\nGCC version: 12\n");
    write("proc/sys/kernel/osrelease", "6.8.0-45-generic");
    write("proc/cpuinfo", "flags : fpu vme");
    write("proc/self/cgroup", "0::/user.slice");
    write("sys/fs/cgroup/user.slice/rdma.max", "mlx5_0 hca_handle=max hca_object=max");
    write("sys/fs/cgroup/user.slice/memory.max", "max");
    write("proc/sys/vm/max_map_count", "65530");
    write("proc/sys/vm/nr_hugepages", "0");
    write("proc/sys/kernel/numa_balancing", "0");
    write("proc/sys/net/ipv4/conf/all/arp_ignore", "0");
    write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
    write("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance");
    write("sys/devices/system/node/node0/cpulist", "0-31");
    write("sys/devices/system/node/node1/cpulist", "32-63");
    write("etc/os-release", "ID=ubuntu\nID_LIKE=debian\nPRETTY_NAME=\"Ubuntu 24.04 LTS\"\n");
  }
  fs::path root_;
};

inline std::vector<Finding> of(const Report& report, std::string_view id) {
  std::vector<Finding> found;
  for (const Finding& one : report.findings) {
    if (one.id == id) found.push_back(one);
  }
  return found;
}

}  // namespace gdrx::doctor::test
