// SPDX-License-Identifier: Apache-2.0
// One function per check. It answers with a finding for each thing that it looked at, and with none
// where there is nothing to look at. Ids are given by the table.
#pragma once

#include "doctor/facts.hpp"

namespace gdrx::doctor {

// gpu.cpp, gpu_calls.cpp
Findings check_gpu_present(const Facts&);
Findings check_nvidia_driver(const Facts&);
Findings check_open_kernel_module(const Facts&);
Findings check_driver_library(const Facts&);
Findings check_gpu_nodes(const Facts&);
Findings check_cuda_gdr(const Facts&);
Findings check_cuda_dmabuf(const Facts&);
Findings check_cuda_vmm_gdr(const Facts&);
Findings check_cuda_flush(const Facts&);
Findings check_bar1(const Facts&);
Findings check_mig(const Facts&);
Findings check_persistence(const Facts&);
// peer_memory.cpp
Findings check_nvidia_peermem(const Facts&);
Findings check_nv_peer_mem_retired(const Facts&);
Findings check_peermem_symbols(const Facts&);
Findings check_dmabuf_kernel(const Facts&);
Findings check_dmabuf_verbs(const Facts&);
// proof.cpp
Findings check_rdma_loopback(const Facts&);
Findings check_gdr_proof(const Facts&);
// nic.cpp
Findings check_rdma_nic(const Facts&);
Findings check_libibverbs(const Facts&);
Findings check_uverbs_nodes(const Facts&);
Findings check_rdma_cm(const Facts&);
Findings check_rdma_netns(const Facts&);
Findings check_nic_firmware(const Facts&);
// port.cpp
Findings check_port_state(const Facts&);
Findings check_port_rate(const Facts&);
Findings check_port_mtu(const Facts&);
Findings check_port_errors(const Facts&);
// roce.cpp
Findings check_roce_gid(const Facts&);
Findings check_arp_flux(const Facts&);
// congestion.cpp
Findings check_roce_pfc(const Facts&);
Findings check_roce_ecn(const Facts&);
Findings check_roce_congestion(const Facts&);
// pci.cpp
Findings check_gpu_nic_distance(const Facts&);
Findings check_pcie_link(const Facts&);
Findings check_pcie_errors(const Facts&);
Findings check_virtual_machine(const Facts&);
Findings check_numa_known(const Facts&);
// acs.cpp, pci_control.cpp
Findings check_acs(const Facts&);
Findings check_iommu(const Facts&);
Findings check_ats(const Facts&);
Findings check_max_read_request(const Facts&);
Findings check_relaxed_ordering(const Facts&);
// limits.cpp
Findings check_memlock(const Facts&);
Findings check_nofile(const Facts&);
Findings check_shm(const Facts&);
Findings check_rdma_cgroup(const Facts&);
Findings check_memory_cgroup(const Facts&);
Findings check_max_map_count(const Facts&);
Findings check_fork_safety(const Facts&);
// cpu.cpp
Findings check_numa_balancing(const Facts&);
Findings check_cpu_affinity(const Facts&);
Findings check_cpu_governor(const Facts&);
Findings check_hugepages(const Facts&);
// surroundings.cpp
Findings check_container(const Facts&);
Findings check_environment(const Facts&);

std::vector<Trait> traits_of(const Facts&);  // traits.cpp

}  // namespace gdrx::doctor
