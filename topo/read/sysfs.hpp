// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gdrx/topology.hpp"
#include "topo/read/host_files.hpp"

namespace gdrx::topo {

/// PCI tree, GPUs, RDMA devices and (only if `numa`) NUMA nodes, as sysfs tells them.
Parts sysfs_parts(const HostFiles& files, bool numa);

/// NUMA nodes and packages from sys/devices/system.
std::vector<NumaNode> sysfs_numa(const HostFiles& files);

/// The value of field "V3" of a card's vital product data, by which Data Direct functions and RDMA
/// functions of one card know each other. Empty where there is none.
std::string vpd_v3(const std::string& vpd);

/// Adds NVLinks and model names from NVML, if its library can be loaded. Says why if not.
void add_nvml(Parts& parts);

}  // namespace gdrx::topo
