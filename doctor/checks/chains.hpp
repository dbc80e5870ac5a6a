// SPDX-License-Identifier: Apache-2.0
// Which PCI functions matter: GPUs, RDMA NICs, and the bridges above them.
#pragma once

#include "doctor/host_facts.hpp"

namespace gdrx::doctor {

std::vector<std::size_t> relevant_devices(const HostFacts& facts);  // nodes of GPUs and NICs
std::vector<std::size_t> relevant_bridges(const HostFacts& facts);
/// Bridges above a node, nearest first.
std::vector<std::size_t> chain_above(const topo::Topology& topology, std::size_t node);

}  // namespace gdrx::doctor
