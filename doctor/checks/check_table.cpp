// SPDX-License-Identifier: Apache-2.0
// The table of checks, and running it.
#include <algorithm>
#include <array>

#include "doctor/checks/checks.hpp"

namespace gdrx::doctor {
namespace {

struct Check {
  std::string_view id;
  std::string_view title;
  Findings (*run)(const HostFacts&);
};

constexpr Check kChecks[] = {
    {"gpu-present", "an NVIDIA GPU is seen", check_gpu_present},
    {"nvidia-driver", "the NVIDIA driver is loaded and new enough", check_nvidia_driver},
    {"open-kernel-module", "the driver's open flavour, for dma-buf", check_open_kernel_module},
    {"driver-library", "driver and library are of one version", check_driver_library},
    {"gpu-nodes", "the GPUs' device nodes", check_gpu_nodes},
    {"cuda-gdr", "CUDA says that the GPU supports GPUDirect RDMA", check_cuda_gdr},
    {"cuda-dmabuf", "GPU memory can be exported as dma-buf", check_cuda_dmabuf},
    {"cuda-vmm-gdr", "memory of cuMemCreate can be registered", check_cuda_vmm_gdr},
    {"cuda-flush", "who sees what a NIC wrote, and when", check_cuda_flush},
    {"bar1", "the window through which NICs see GPU memory", check_bar1},
    {"mig", "GPUs divided into instances", check_mig},
    {"persistence", "the driver stays loaded", check_persistence},
    {"nvidia-peermem", "the peer-memory module", check_nvidia_peermem},
    {"nv-peer-mem-retired", "the retired peer-memory module is gone", check_nv_peer_mem_retired},
    {"peermem-symbols", "the RDMA stack offers peer memory", check_peermem_symbols},
    {"dmabuf-kernel", "the kernel registers dma-buf", check_dmabuf_kernel},
    {"dmabuf-verbs", "the NIC's driver registers dma-buf", check_dmabuf_verbs},
    {"gdr-proof", "NICs reach GPU memory: done, not believed", check_gdr_proof},
    {"rdma-loopback", "NICs reach host memory: done, not believed", check_rdma_loopback},
    {"rdma-nic", "an RDMA device is seen", check_rdma_nic},
    {"libibverbs", "the verbs library", check_libibverbs},
    {"uverbs-nodes", "the NICs' device nodes", check_uverbs_nodes},
    {"rdma-cm", "the connection manager's node", check_rdma_cm},
    {"rdma-netns", "RDMA devices and network namespaces", check_rdma_netns},
    {"nic-firmware", "equal cards have equal firmware", check_nic_firmware},
    {"port-state", "ports are up", check_port_state},
    {"port-rate", "ports run at their rate", check_port_rate},
    {"port-mtu", "ports use large packets", check_port_mtu},
    {"port-errors", "ports count no errors", check_port_errors},
    {"roce-gid", "the address that RoCE uses", check_roce_gid},
    {"roce-pfc", "RoCE's packets are paused, not dropped", check_roce_pfc},
    {"roce-ecn", "congestion control of RoCE", check_roce_ecn},
    {"roce-congestion", "marks of congestion are answered", check_roce_congestion},
    {"arp-flux", "several NICs in one subnet", check_arp_flux},
    {"gpu-nic-distance", "each GPU has a near NIC", check_gpu_nic_distance},
    {"pcie-link", "PCIe links are trained as wide and fast as they can", check_pcie_link},
    {"pcie-errors", "PCIe links correct no errors", check_pcie_errors},
    {"virtual-machine", "the PCIe tree is the real one", check_virtual_machine},
    {"numa-known", "devices say their NUMA node", check_numa_known},
    {"acs", "GPU and NIC talk through the switch", check_acs},
    {"iommu", "the IOMMU does not translate", check_iommu},
    {"ats", "address translation in virtual machines", check_ats},
    {"max-read-request", "how much a NIC reads at once", check_max_read_request},
    {"relaxed-ordering", "PCIe relaxed ordering is allowed", check_relaxed_ordering},
    {"memlock", "memory can be locked", check_memlock},
    {"nofile", "enough file descriptors", check_nofile},
    {"shm", "/dev/shm is large enough", check_shm},
    {"rdma-cgroup", "no cgroup limits RDMA objects", check_rdma_cgroup},
    {"memory-cgroup", "no cgroup limits memory tightly", check_memory_cgroup},
    {"max-map-count", "enough memory mappings", check_max_map_count},
    {"fork-safety", "children do not take registered pages", check_fork_safety},
    {"numa-balancing", "the kernel leaves pages where they are", check_numa_balancing},
    {"cpu-affinity", "this process may run near the GPUs", check_cpu_affinity},
    {"cpu-governor", "CPUs do not sleep on the job", check_cpu_governor},
    {"hugepages", "large pages", check_hugepages},
    {"container", "what this container lacks", check_container},
    {"environment", "variables that turn GDR off", check_environment},
};

std::string host_line(const HostFacts& facts) {
  const auto count = [](std::size_t number, const char* what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  const std::string& name = facts.distribution.name;
  return fmt::format("{}, {}, kernel {}{}{}{}", count(facts.topology.gpus().size(), "GPU"),
                     count(facts.topology.nics().size(), "RDMA NIC"),
                     facts.release.empty() ? "unknown" : facts.release, name.empty() ? "" : ", ",
                     name, facts.in_container ? ", in a container" : "");
}

}  // namespace

std::vector<CheckName> checks() {
  std::vector<CheckName> names;
  for (const Check& check : kChecks) names.push_back({check.id, check.title});
  return names;
}

Result<Report> diagnose(const Host& host) {
  const HostFacts facts = GDRX_TRY(gather(host));
  Report report;
  report.host = host_line(facts);
  report.traits = traits_of(facts);
  for (const Check& check : kChecks) {
    Findings found = check.run(facts);
    if (found.empty()) report.not_applicable.emplace_back(check.id);
    for (Finding& one : found) {
      one.id = check.id;
      report.findings.push_back(std::move(one));
    }
  }
  return report;
}

Severity worst(const Report& report) {
  Severity worst = Severity::ok;
  for (const Finding& one : report.findings) worst = std::max(worst, one.severity);
  return worst;
}

namespace {
constexpr std::array<std::string_view, 5> kSeverities{"OK", "UNKNOWN", "WARN", "SLOW", "FAIL"};
}

std::string_view to_string(Severity severity) {
  return kSeverities[static_cast<std::size_t>(severity)];
}

std::optional<Severity> parse_severity(std::string_view text) {
  const auto found = std::find(kSeverities.begin(), kSeverities.end(), text);
  if (found == kSeverities.end()) return std::nullopt;
  return static_cast<Severity>(found - kSeverities.begin());
}

std::string doc_link(const Finding& finding) { return "docs/gdr-setup.md#" + finding.id; }

}  // namespace gdrx::doctor
