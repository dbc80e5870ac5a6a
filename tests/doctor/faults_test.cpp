// SPDX-License-Identifier: Apache-2.0
// A good host, and one broken for each check: what is found, how bad it is, what to do.
#include <fstream>
#include <set>
#include <sstream>

#include "gdrx/snapshot.hpp"
#include "tests/doctor/host_tree.hpp"
#include "tools/doctor/doctor_view.hpp"

namespace gdrx::doctor {
namespace {

using test::HostTree;
using test::kGpu;
using test::kIb;
using test::kRoce;
using test::kUp;
using test::kVerbs0;
using test::kVerbs1;
using test::fs::path;

struct Fault {
  const char* id;
  Severity severity;
  const char* evidence;  // words in it
  const char* fix;
  void (*break_it)(HostTree&);
};

path at(const std::string& chain, const char* file) { return path("sys/devices") / chain / file; }

CudaDevice& gpu(HostTree& host) { return host.answers.cuda->devices[0]; }
NvmlDevice& board(HostTree& host) { return host.answers.nvml->devices[0]; }

// As most clouds show their devices: with NUMA nodes, straight on a host bridge.
void hide_switches(HostTree& host) {
  host.flatten();
  for (const char* device : {"0000:00:05.0", "0000:00:06.0"}) {
    host.write(at(std::string("pci0000:00/") + device, "numa_node"), "0");
  }
}

const Fault kFaults[] = {
    {"gpu-present", Severity::fail, "0x10de", "lspci",
     [](HostTree& h) { h.write(at(kGpu, "class"), "0x020000"); }},
    {"gpu-present", Severity::unknown, "0000:13:00.0: vendor is not 0x10de", "gdrx topo --map",
     [](HostTree& h) { h.write(at(kGpu, "vendor"), "0x1002"); }},
    {"nvidia-driver", Severity::fail, "not there", "apt-get install -y nvidia-open",
     [](HostTree& h) { h.remove("sys/module/nvidia"); }},
    {"nvidia-driver", Severity::fail, "460.32", "apt-get",
     [](HostTree& h) { h.write("sys/module/nvidia/version", "460.32.03"); }},
    {"nvidia-driver", Severity::warn, "470.57", "apt-get",
     [](HostTree& h) { h.write("sys/module/nvidia/version", "470.57.02"); }},
    {"open-kernel-module", Severity::warn, "NVIDIA UNIX x86_64", "nvidia-open",
     [](HostTree& h) {
       h.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550");
     }},
    {"driver-library", Severity::fail, "error 18", "reboot",
     [](HostTree& h) { h.answers.nvml = fail(Errc::mismatch, "nvmlInit: error 18"); }},
    {"gpu-nodes", Severity::fail, "nvidia-uvm", "nvidia-modprobe",
     [](HostTree& h) { h.remove("dev/nvidia-uvm"); }},
    {"cuda-gdr", Severity::fail, "0", "NCCL_NET_GDR_LEVEL",
     [](HostTree& h) { gpu(h).gdr = false; }},
    {"cuda-dmabuf", Severity::warn, "0", "5.12", [](HostTree& h) { gpu(h).dmabuf = false; }},
    {"cuda-dmabuf", Severity::fail, "error 801", "dmesg",
     [](HostTree& h) { gpu(h).dmabuf_export = "cuMemGetHandleForAddressRange: error 801"; }},
    {"cuda-vmm-gdr", Severity::warn, "0", "CUMEM", [](HostTree& h) { gpu(h).vmm_gdr = false; }},
    {"cuda-flush", Severity::slow, "ORDERING: 0", "NCCL_GDR_FLUSH_DISABLE",
     [](HostTree& h) { gpu(h).writes_ordering = gpu(h).flush_options = 0; }},
    {"bar1", Severity::warn, "256 MiB", "Resizable BAR",
     [](HostTree& h) { board(h).bar1_bytes = 256 << 20; }},
    {"mig", Severity::warn, "1", "-mig 0", [](HostTree& h) { board(h).mig = true; }},
    {"persistence", Severity::warn, "0", "persistenced",
     [](HostTree& h) { board(h).persistence = false; }},
    {"nvidia-peermem", Severity::fail, "not there", "modprobe nvidia-peermem",
     [](HostTree& h) {
       h.remove("sys/module/nvidia_peermem");
       h.answers.proofs = fail(Errc::unsupported, "not tried");
       h.write("proc/sys/kernel/osrelease", "5.4.0");
       gpu(h).dmabuf = false;
     }},
    {"nvidia-peermem", Severity::warn, "not there", "modules-load.d",
     [](HostTree& h) {
       h.remove("sys/module/nvidia_peermem");
       h.answers.proofs = fail(Errc::unsupported, "not tried");
       h.answers.verbs = fail(Errc::unsupported, "no answer");
     }},
    {"nv-peer-mem-retired", Severity::warn, "nv_peer_mem", "rmmod nv_peer_mem",
     [](HostTree& h) { h.write("sys/module/nv_peer_mem/version", "1.3"); }},
    {"peermem-symbols", Severity::warn, "no ib_register", "dma-buf",
     [](HostTree& h) {
       h.remove("sys/module/nvidia_peermem");
       h.write("proc/kallsyms", "0000000000000000 T ib_alloc_pd\n");
     }},
    {"dmabuf-kernel", Severity::warn, "5.4", "kernel",
     [](HostTree& h) { h.write("proc/sys/kernel/osrelease", "5.4.0-200-generic"); }},
    {"dmabuf-verbs", Severity::warn, "errno 95", "peermem",
     [](HostTree& h) { h.answers.verbs->devices[0].dmabuf_errno = EOPNOTSUPP; }},
    {"rdma-nic", Severity::fail, "empty", "mlx5_ib",
     [](HostTree& h) { h.remove("sys/class/infiniband"); }},
    {"uverbs-nodes", Severity::fail, "uverbs0", "modprobe ib_uverbs",
     [](HostTree& h) { h.remove("dev/infiniband/uverbs0"); }},
    {"uverbs-nodes", Severity::fail, "Permission denied", "chmod",
     [](HostTree& h) { h.answers.open_errno["/dev/infiniband/uverbs1"] = EACCES; }},
    {"uverbs-nodes", Severity::fail, "empty", "ib_uverbs",
     [](HostTree& h) { h.remove("sys/class/infiniband_verbs"); }},
    {"rdma-cm", Severity::warn, "rdma_cm", "rdma_ucm",
     [](HostTree& h) { h.remove("dev/infiniband/rdma_cm"); }},
    {"rdma-netns", Severity::warn, "N", "rdma system set netns shared",
     [](HostTree& h) { h.write("sys/module/ib_core/parameters/netns_mode", "N"); }},
    {"nic-firmware", Severity::warn, "28.39.1002", "mlxfwmanager",
     [](HostTree& h) { h.write(path(kVerbs1) / "fw_ver", "28.39.1002"); }},
    {"port-state", Severity::warn, "DOWN", "ip link set eth1 up",
     [](HostTree& h) {
       h.write(path(kVerbs1) / "ports/1/state", "1: DOWN");
       h.write(path(kVerbs1) / "ports/1/phys_state", "3: Disabled");
     }},
    {"port-state", Severity::fail, "INIT", "opensm",
     [](HostTree& h) {
       for (const char* nic : {kVerbs0, kVerbs1}) h.write(path(nic) / "ports/1/state", "2: INIT");
     }},
    {"port-rate", Severity::slow, "1X", "mlxlink",
     [](HostTree& h) { h.write(path(kVerbs0) / "ports/1/rate", "100 Gb/sec (1X NDR)"); }},
    {"port-mtu", Severity::slow, "1500", "ip link set eth1 mtu 9000",
     [](HostTree& h) { h.write("sys/class/net/eth1/mtu", "1500"); }},
    {"port-mtu", Severity::slow, "576", "mtu 9000",
     [](HostTree& h) { h.write("sys/class/net/eth1/mtu", "576"); }},
    {"port-mtu", Severity::slow, "active_mtu 4", "partitions.conf",
     [](HostTree& h) { h.answers.verbs->devices[0].active_mtu = 4; }},
    {"port-errors", Severity::warn, "link_downed 7", "mlxlink",
     [](HostTree& h) { h.write(path(kVerbs0) / "ports/1/counters/link_downed", "7"); }},
    {"port-errors", Severity::warn, "symbol_error 3", "cable",
     [](HostTree& h) { h.write(path(kVerbs0) / "ports/1/counters/symbol_error", "3"); }},
    {"port-errors", Severity::warn, "out_of_sequence 9; hw_counters/packet_seq_err 4", "roce-pfc",
     [](HostTree& h) {
       h.write(path(kVerbs1) / "ports/1/hw_counters/out_of_sequence", "9");
       h.write(path(kVerbs1) / "ports/1/hw_counters/packet_seq_err", "4");
     }},
    {"port-errors", Severity::warn, "rnr_nak_retry_err 2", "posted nothing",
     [](HostTree& h) { h.write(path(kVerbs1) / "ports/1/hw_counters/rnr_nak_retry_err", "2"); }},
    {"roce-pfc", Severity::warn, "pfc_en 0x00", "dcb pfc set dev eth1 prio-pfc",
     [](HostTree& h) { h.answers.dcb.insert_or_assign("eth1", Dcb{0, 0, 0, false}); }},
    {"roce-pfc", Severity::warn, "pfc_en 0xff; pauses sent 4, received 7", "all:off 3:on",
     [](HostTree& h) { h.answers.dcb.insert_or_assign("eth1", Dcb{0xff, 4, 7, true}); }},
    {"roce-pfc", Severity::unknown, "Operation not supported", "mlnx_qos -i eth1",
     [](HostTree& h) { h.answers.dcb.clear(); }},
    {"roce-congestion", Severity::warn, "rp_cnp_ignored 5", "roce_rp/enable/3",
     [](HostTree& h) { h.write(path(kVerbs1) / "ports/1/hw_counters/rp_cnp_ignored", "5"); }},
    {"roce-congestion", Severity::warn, "marked_roce_packets 8, np_cnp_sent 0", "roce_np/enable/3",
     [](HostTree& h) {
       h.write(path(kVerbs1) / "ports/1/hw_counters/np_ecn_marked_roce_packets", "8");
     }},
    {"roce-ecn", Severity::unknown, "not there", "np_cnp_sent",
     [](HostTree& h) { h.remove("sys/class/net/eth1/ecn"); }},
    {"roce-gid", Severity::fail, "no entry", "ip addr add",
     [](HostTree& h) { h.remove(path(kVerbs1) / "ports/1/gids"); }},
    {"roce-gid", Severity::warn, "fe80", "ip addr add",
     [](HostTree& h) { h.remove(path(kVerbs1) / "ports/1/gids/3"); }},
    {"roce-gid", Severity::fail, "ffff:c0a8", "cma_roce_mode",
     [](HostTree& h) {
       for (const char* index : {"0", "3"}) {
         h.write(path(kVerbs1) / "ports/1/gid_attrs/types" / index, "IB/RoCE v1");
       }
     }},
    {"roce-ecn", Severity::warn, "0 for all", "roce_np/enable/3",
     [](HostTree& h) { h.write("sys/class/net/eth1/ecn/roce_np/enable/3", "0"); }},
    {"arp-flux", Severity::warn, "mlx5_0 mlx5_1", "arp_ignore=1",
     [](HostTree& h) {
       h.write(path(kVerbs0) / "ports/1/link_layer", "Ethernet");
       h.write(path(kVerbs0) / "ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:c0a8:0a02");
       h.write(path(kVerbs0) / "ports/1/gid_attrs/types/3", "RoCE v2");
     }},
    {"pcie-link", Severity::slow, "x8 of x16", "reseat",
     [](HostTree& h) { h.write(at(kIb, "current_link_width"), "8"); }},
    {"pcie-link", Severity::slow, "8 of 32", "BIOS",
     [](HostTree& h) { h.write(at(kIb, "current_link_speed"), "8.0 GT/s PCIe"); }},
    {"pcie-errors", Severity::warn, "12", "aer",
     [](HostTree& h) { h.write(at(kIb, "aer_dev_correctable"), "RxErr 12\nTOTAL_ERR_COR 12"); }},
    {"numa-known", Severity::warn, "-1", "numa_node",
     [](HostTree& h) {
       for (const std::string& chain : {kGpu, kUp + "/0000:12:00.0", kUp, test::kPort}) {
         h.write(at(chain, "numa_node"), "-1");
       }
     }},
    {"acs", Severity::slow, "0000:12:01.0=0x001d", "disable-acs.sh",
     [](HostTree& h) { h.config(kUp + "/0000:12:01.0", 0x156, 0x1d); }},
    {"acs", Severity::slow, "0000:13:00.0 in 40", "disable-acs.sh",
     [](HostTree& h) {
       h.hide_config(kUp);
       h.group(kGpu, 40, "identity");
       h.group(kIb, 41, "identity");
     }},
    {"acs", Severity::unknown, "64 bytes", "sudo gdrx doctor",
     [](HostTree& h) { h.hide_config(kUp); }},
    {"iommu", Severity::slow, "DMA-FQ", "iommu=pt",
     [](HostTree& h) {
       h.write("sys/class/iommu/dmar0/x", "");
       h.group(kGpu, 40, "identity");
       h.group(kIb, 41, "DMA-FQ");
     }},
    {"ats", Severity::slow, "0x0000", "ATS_ENABLED=1",
     [](HostTree& h) {
       h.write("proc/cpuinfo", "flags : fpu hypervisor");
       h.config(kIb, 0x176, 0);
     }},
    {"max-read-request", Severity::slow, "0x0010", "setpci",
     [](HostTree& h) { h.config(kIb, 0x68, 0x0010); }},
    {"max-read-request", Severity::unknown, "64 bytes", "sudo lspci",
     [](HostTree& h) { h.hide_config(kIb); }},
    {"relaxed-ordering", Severity::warn, "0x5000", "setpci",
     [](HostTree& h) { h.config(kIb, 0x68, 0x5000); }},
    {"memlock", Severity::fail, "64 KiB", "limits.d",
     [](HostTree& h) { h.answers.limits[Resource::memlock] = 64 << 10; }},
    {"nofile", Severity::warn, "1024", "ulimit -n",
     [](HostTree& h) { h.answers.limits[Resource::nofile] = 1024; }},
    {"shm", Severity::fail, "64 MiB", "remount", [](HostTree& h) { h.answers.shm = 64 << 20; }},
    {"shm", Severity::warn, "512 MiB", "remount", [](HostTree& h) { h.answers.shm = 512 << 20; }},
    {"rdma-cgroup", Severity::warn, "hca_handle=2", "hca_handle=max",
     [](HostTree& h) {
       h.write("sys/fs/cgroup/user.slice/rdma.max", "mlx5_0 hca_handle=2 hca_object=max");
     }},
    {"memory-cgroup", Severity::warn, "1073741824", "memory.max",
     [](HostTree& h) { h.write("sys/fs/cgroup/user.slice/memory.max", "1073741824"); }},
    {"max-map-count", Severity::warn, "1024", "vm.max_map_count",
     [](HostTree& h) { h.write("proc/sys/vm/max_map_count", "1024"); }},
    {"fork-safety", Severity::warn, "5.4", "RDMAV_FORK_SAFE",
     [](HostTree& h) { h.write("proc/sys/kernel/osrelease", "5.4.0"); }},
    {"numa-balancing", Severity::warn, "1", "kernel.numa_balancing=0",
     [](HostTree& h) { h.write("proc/sys/kernel/numa_balancing", "1"); }},
    {"cpu-affinity", Severity::slow, "32-63", "numactl --cpunodebind=0",
     [](HostTree& h) { h.answers.affinity = "32-63"; }},
    {"cpu-governor", Severity::warn, "powersave", "cpupower",
     [](HostTree& h) {
       h.write("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave");
     }},
    {"hugepages", Severity::warn, "[never]", "madvise",
     [](HostTree& h) {
       h.write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
     }},
    {"container", Severity::warn, "verbs nodes", "--device /dev/infiniband",
     [](HostTree& h) {
       h.write(".dockerenv", "");
       h.remove("dev/infiniband");
     }},
    {"environment", Severity::fail, "NCCL_IB_DISABLE=1", "unset",
     [](HostTree& h) { h.answers.environment = {"NCCL_IB_DISABLE=1"}; }},
    {"libibverbs", Severity::fail, "no library", "ibverbs-utils",
     [](HostTree& h) { h.answers.verbs = fail(Errc::unsupported, "no library"); }},
    {"gpu-nic-distance", Severity::slow, "SYS", "gdrx topo --map",
     [](HostTree& h) { h.move_gpu("pci0000:80/0000:80:01.0/0000:81:00.0", 1); }},
    {"gpu-nic-distance", Severity::unknown, "PHB", "gdrx perf -d mlx5_0 --use_cuda 0",
     [](HostTree& h) { h.flatten(); }},
    {"gpu-nic-distance", Severity::unknown, "PHB", "gdrx perf -d mlx5_0 --use_cuda 0",
     [](HostTree& h) { hide_switches(h); }},
    {"gdr-proof", Severity::fail, "dma-buf: ibv_reg_dmabuf_mr", "modprobe nvidia-peermem",
     [](HostTree& h) {
       h.answers.proofs->at(1).problem = "ibv_reg_dmabuf_mr";
       h.answers.proofs->at(1).native = EOPNOTSUPP;
     }},
    {"gdr-proof", Severity::fail, "differ from 4096 on", "acs",
     [](HostTree& h) {
       h.answers.proofs->pop_back();
       h.answers.proofs->at(1).problem = "the bytes written differ from 4096 on";
     }},
    {"gdr-proof", Severity::unknown, "not tried", "gdrx doctor",
     [](HostTree& h) { h.answers.proofs = fail(Errc::unsupported, "not tried"); }},
    {"rdma-loopback", Severity::fail, "status 12", "4791",
     [](HostTree& h) { h.answers.proofs->at(0).problem = "completion status 12"; }},
    {"rdma-loopback", Severity::fail, "ibv_reg_mr", "ulimit -l",
     [](HostTree& h) {
       h.answers.proofs->at(0).problem = "ibv_reg_mr";
       h.answers.proofs->at(0).native = ENOMEM;
     }},
    {"virtual-machine", Severity::warn, "hypervisor", "NCCL_TOPO_FILE",
     [](HostTree& h) {
       h.write("proc/cpuinfo", "flags : fpu hypervisor");
       h.flatten();
     }},
    {"virtual-machine", Severity::warn, "hypervisor", "NCCL_TOPO_FILE",
     [](HostTree& h) {
       h.write("proc/cpuinfo", "flags : fpu hypervisor");
       hide_switches(h);
     }},
};

TEST(Doctor, FindsNothingWrongWithAGoodHost) {
  HostTree host;
  for (const Finding& one : host.diagnose().findings) {
    EXPECT_EQ(one.severity, Severity::ok)
        << one.id << " " << one.subject << ": " << one.summary << "; " << one.evidence;
    EXPECT_FALSE(one.evidence.empty()) << one.id;
  }
}

class Faults : public ::testing::TestWithParam<Fault> {};

TEST_P(Faults, AreFoundWithEvidenceAndAFix) {
  const Fault& fault = GetParam();
  HostTree host;
  fault.break_it(host);
  const Report report = host.diagnose();
  const auto found = test::of(report, fault.id);
  const auto worst =
      std::max_element(found.begin(), found.end(),
                       [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  ASSERT_NE(worst, found.end()) << "the check says nothing";
  EXPECT_EQ(to_string(worst->severity), to_string(fault.severity)) << worst->summary;
  EXPECT_NE(worst->evidence.find(fault.evidence), std::string::npos) << worst->evidence;
  std::string fix;
  for (const std::string& line : worst->fix) fix += line + "\n";
  EXPECT_NE(fix.find(fault.fix), std::string::npos) << fix;
  std::istringstream lines(tools::doctor_text(report, {}));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST_P(Faults, AreFoundInASnapshotOfTheHostToo) {
  HostTree host;
  GetParam().break_it(host);
  const auto bytes = capture(host.host(), {});
  ASSERT_TRUE(bytes) << bytes.error().what;
  const auto snapshot = topo::parse_snapshot(*bytes, "host.tar.gz");
  ASSERT_TRUE(snapshot) << snapshot.error().what;
  const auto report = diagnose(host_of(*snapshot));
  ASSERT_TRUE(report) << report.error().what;
  const auto lines = [](const Report& from) {
    std::string text = from.host + "\n";
    for (const Finding& one : from.findings) {
      text +=
          fmt::format("{} {} {} {}\n", to_string(one.severity), one.id, one.subject, one.summary);
    }
    return text;
  };
  EXPECT_EQ(lines(*report), lines(host.diagnose()));
}

INSTANTIATE_TEST_SUITE_P(EachCheck, Faults, ::testing::ValuesIn(kFaults), [](const auto& info) {
  std::string name = info.param.id;
  std::replace(name.begin(), name.end(), '-', '_');
  return fmt::format("{}_{}", name, info.index);
});

TEST(Doctor, HasAGoodAndABrokenHostForEachCheck) {
  HostTree host;
  std::set<std::string_view> good;
  std::set<std::string_view> broken;
  const Report report = host.diagnose();
  for (const Finding& one : report.findings) good.insert(one.id);
  for (const Fault& fault : kFaults) broken.insert(fault.id);
  for (const CheckName& check : checks()) {
    // ATS matters in virtual machines alone, which have a test of their own.
    EXPECT_TRUE(check.id == "ats" || good.contains(check.id)) << check.id;
    EXPECT_TRUE(broken.contains(check.id)) << check.id;
  }
}

TEST(Doctor, GuideHasAnAnchorForEachCheck) {
  std::ifstream file(GDRX_SOURCE_DIR "/docs/gdr-setup.md");
  std::ostringstream text;
  text << file.rdbuf();
  for (const CheckName& check : checks()) {
    EXPECT_NE(text.str().find(fmt::format("<a id=\"{}\"></a>", check.id)), std::string::npos)
        << check.id;
  }
}

}  // namespace
}  // namespace gdrx::doctor
