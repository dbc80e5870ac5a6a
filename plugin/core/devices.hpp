// SPDX-License-Identifier: Apache-2.0
// What NCCL is told there is to send over.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gdrx/config.hpp"
#include "gdrx/transport.hpp"
#include "plugin/abi/types.hpp"

namespace gdrx::net {

struct NetDevice {
  std::string name;      // unique on the host
  std::string pci_path;  // in /sys; empty: none
  std::uint64_t guid = 0;
  int speed = 0;  // Mbit/s
  int port = 1;
  float latency = 0;            // us
  std::string hca;              // GDRX_HCA of its device contexts; empty: as the user has it
  std::string description;      // for the log
  int rail = nccl::kUndefined;  // as the user says in NCCL_IB_HCA or GDRX_HCA
  int plane = nccl::kUndefined;
  std::vector<int> parts;  // of a merged device: indexes of those it is made of
  int pointers = nccl::kPtrHost;
  bool reg_is_global = false;          // registering again costs next to nothing
  bool software = false;               // soft-RoCE and the like: processors make its packets
  bool force_flush = false;            // GPU memory: NCCL has to flush on every GPU
  std::string memory = "host memory";  // which it takes and how, for the log
};

/// The host's devices and the fabric that serves them: verbs where there are RDMA ports that are
/// up, else ucx; GDRX_TRANSPORT overrides. Errors say what is missing.
struct DeviceSet {
  std::string fabric;
  std::deque<NetDevice> devices;  // NCCL keeps pointers to the names: they stay in their places
};
/// What carries messages where no NIC does: GDRX_TRANSPORT=ucx or tcp alone, else this host's by
/// UCX and other hosts' by gdrx's own TCP.
Result<std::shared_ptr<Fabric>> open_sockets(const Config& config, const Log& log);
Result<DeviceSet> find_devices(const Config& config, const Log& log);

/// One device of several ports: messages are spread over them as rails. `parts` are indexes of
/// `devices`; Errc::invalid_argument for those that cannot be merged.
Result<NetDevice> merge(const std::deque<NetDevice>& devices, std::span<const int> parts);

/// Ports that are up, from /sys/class/infiniband below `root` ("" but in tests), sorted by name;
/// `wanted` has GDRX_HCA's grammar.
Result<std::vector<NetDevice>> list_rdma_ports(const std::string& root, const std::string& wanted);

}  // namespace gdrx::net
