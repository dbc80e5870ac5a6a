// SPDX-License-Identifier: Apache-2.0
// One function per check. It answers with a finding for each thing that it looked at, and with none
// where there is nothing to look at. Ids are given by the table.
#pragma once

#include "doctor/host_facts.hpp"

namespace gdrx::doctor {

// gpu.cpp, gpu_driver.cpp
Findings check_gpu_present(const HostFacts&);
Findings check_nvidia_driver(const HostFacts&);
Findings check_open_kernel_module(const HostFacts&);
Findings check_driver_library(const HostFacts&);
Findings check_gpu_nodes(const HostFacts&);
Findings check_cuda_gdr(const HostFacts&);
Findings check_cuda_dmabuf(const HostFacts&);
Findings check_cuda_vmm_gdr(const HostFacts&);
Findings check_cuda_flush(const HostFacts&);
Findings check_bar1(const HostFacts&);
Findings check_mig(const HostFacts&);
Findings check_persistence(const HostFacts&);
// peer_memory.cpp
Findings check_nvidia_peermem(const HostFacts&);
Findings check_nv_peer_mem_retired(const HostFacts&);
Findings check_peermem_symbols(const HostFacts&);
Findings check_dmabuf_kernel(const HostFacts&);
Findings check_dmabuf_verbs(const HostFacts&);
// proof.cpp
Findings check_rdma_loopback(const HostFacts&);
Findings check_gdr_proof(const HostFacts&);
// nic.cpp
Findings check_rdma_nic(const HostFacts&);
Findings check_libibverbs(const HostFacts&);
Findings check_uverbs_nodes(const HostFacts&);
Findings check_rdma_cm(const HostFacts&);
Findings check_rdma_netns(const HostFacts&);
Findings check_nic_firmware(const HostFacts&);
// port.cpp
Findings check_port_state(const HostFacts&);
Findings check_port_rate(const HostFacts&);
Findings check_port_mtu(const HostFacts&);
Findings check_port_errors(const HostFacts&);
// roce.cpp
Findings check_roce_gid(const HostFacts&);
Findings check_arp_flux(const HostFacts&);
// congestion.cpp
Findings check_roce_pfc(const HostFacts&);
Findings check_roce_ecn(const HostFacts&);
Findings check_roce_congestion(const HostFacts&);
// pci.cpp
Findings check_gpu_nic_distance(const HostFacts&);
Findings check_pcie_link(const HostFacts&);
Findings check_pcie_errors(const HostFacts&);
Findings check_virtual_machine(const HostFacts&);
Findings check_numa_known(const HostFacts&);
// acs.cpp, pci_control.cpp
Findings check_acs(const HostFacts&);
Findings check_iommu(const HostFacts&);
Findings check_ats(const HostFacts&);
Findings check_max_read_request(const HostFacts&);
Findings check_relaxed_ordering(const HostFacts&);
// limits.cpp
Findings check_memlock(const HostFacts&);
Findings check_nofile(const HostFacts&);
Findings check_shm(const HostFacts&);
Findings check_rdma_cgroup(const HostFacts&);
Findings check_memory_cgroup(const HostFacts&);
Findings check_max_map_count(const HostFacts&);
Findings check_fork_safety(const HostFacts&);
// cpu.cpp
Findings check_numa_balancing(const HostFacts&);
Findings check_cpu_affinity(const HostFacts&);
Findings check_cpu_governor(const HostFacts&);
Findings check_hugepages(const HostFacts&);
// surroundings.cpp
Findings check_container(const HostFacts&);
Findings check_environment(const HostFacts&);

std::vector<Trait> traits_of(const HostFacts&);  // host_traits.cpp

}  // namespace gdrx::doctor
