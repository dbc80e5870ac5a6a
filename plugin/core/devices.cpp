// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>

#include "transport/bootstrap/interface.hpp"

namespace gdrx::net {
namespace {

namespace fs = std::filesystem;

// UCX reaches ranks of the same host through memory, and there it is faster than the host's network
// card: NCCL must not plan for less.
constexpr int kLeastSpeed = 100'000;

int interface_speed(const std::string& name) {
  std::ifstream file("/sys/class/net/" + name + "/speed");
  int speed = 0;
  return file >> speed ? speed : 0;
}

// Of a network card of its own, not of a virtual one.
std::string interface_pci_path(const std::string& name) {
  std::error_code error;
  const fs::path path = fs::canonical("/sys/class/net/" + name + "/device", error);
  return error || !fs::exists(path / "vendor", error) ? std::string() : path.string();
}

}  // namespace

Result<DeviceSet> find_devices(const Config& config, const Log& log) {
  DeviceSet set;
  set.fabric = GDRX_TRY(open_fabric("ucx", config, log));
  const Interface interface = GDRX_TRY(choose_interface(list_interfaces(), config.socket_ifname));
  NetDevice device;
  device.name = "gdrx_ucx_" + interface.name;
  device.pci_path = interface_pci_path(interface.name);
  device.guid = std::hash<std::string>()(device.name);
  device.speed = std::max(interface_speed(interface.name), kLeastSpeed);
  device.description = set.fabric->describe() + " over " + interface.name;
  set.devices.push_back(std::move(device));
  set.why = "the ucx fabric";
  return set;
}

}  // namespace gdrx::net
