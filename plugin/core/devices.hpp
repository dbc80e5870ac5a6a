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
  std::string description;  // for the log
};

/// The host's devices and the fabric that serves them. `why` says in a line what was chosen.
struct DeviceSet {
  std::shared_ptr<Fabric> fabric;
  std::vector<NetDevice> devices;
  std::string why;
};
Result<DeviceSet> find_devices(const Config& config, const Log& log);

}  // namespace gdrx::net
