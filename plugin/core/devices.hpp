// SPDX-License-Identifier: Apache-2.0
// What NCCL is told there is to send over.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gdrx/config.hpp"
#include "gdrx/transport.hpp"

namespace gdrx::net {

struct NetDevice {
  std::string name;      // unique on the host
  std::string pci_path;  // in /sys; empty: none
  std::uint64_t guid = 0;
  int speed = 0;  // Mbit/s
  int port = 1;
  float latency = 0;        // us
  std::string hca;          // GDRX_HCA of its lanes; empty: as the user has it
  std::string description;  // for the log
};

/// The host's devices and the fabric that serves them: verbs where there are RDMA ports that are
/// up, else ucx; GDRX_TRANSPORT overrides. Errors say what is missing.
struct DeviceSet {
  std::string fabric;
  std::vector<NetDevice> devices;
};
Result<DeviceSet> find_devices(const Config& config, const Log& log);

/// Ports that are up, from /sys/class/infiniband below `root` ("" but in tests), sorted by name;
/// `wanted` has GDRX_HCA's grammar.
Result<std::vector<NetDevice>> list_rdma_ports(const std::string& root, const std::string& wanted);

}  // namespace gdrx::net
