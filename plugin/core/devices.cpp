// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>

#include "transport/bootstrap/host_id.hpp"
#include "transport/bootstrap/interface.hpp"
#include "transport/fabric/split.hpp"

namespace gdrx::net {
namespace {

namespace fs = std::filesystem;

// UCX reaches ranks of the same host through memory, whatever the host's network card is. NCCL
// takes two channels for the first, about what one of its threads copies, and four for the second:
// two of its kernel's blocks move no more than 10 GB/s (16 MiB between two ranks, six threads that
// copy: 10.5 GB/s told 20000, 15.0 told 40000). Told 80000 it takes eight, and messages up to 1 MiB
// are slower.
constexpr int kLeastSpeed = 20'000;
constexpr int kThreadsSpeed = 40'000;
constexpr int kUnlistedSpeed = 100'000;

int interface_speed(const std::string& name) {
  std::ifstream file("/sys/class/net/" + name + "/speed");
  int speed = 0;
  return file >> speed ? speed : 0;
}

// Of a network card of its own, not of a virtual one.
std::string interface_pci_path(const std::string& name) {
  std::error_code error;
  fs::path path = fs::canonical("/sys/class/net/" + name + "/device", error);
  if (error) return {};
  // A virtio card is a device below its PCI function, which has a name like 0000:00:03.0.
  const auto is_function = [](const std::string& last) {
    return last.size() == 12 && last[4] == ':' && last[7] == ':' && last[10] == '.';
  };
  if (!is_function(path.filename().string())) path = path.parent_path();
  return is_function(path.filename().string()) ? path.string() : std::string();
}

Result<NetDevice> ucx_device(const Config& config, const std::string& description) {
  const Interface interface = GDRX_TRY(choose_interface(list_interfaces(), config.socket_ifname));
  NetDevice device;
  device.name = "gdrx_ucx_" + interface.name;
  device.pci_path = interface_pci_path(interface.name);
  device.guid = std::hash<std::string>()(device.name);
  const int threads = config.net_copy_threads;
  device.speed =
      std::max(interface_speed(interface.name), threads > 1 ? kThreadsSpeed : kLeastSpeed);
  device.description =
      fmt::format("{} over {}, {} to copy", description, interface.name,
                  threads > 1 ? fmt::format("{} threads", threads) : "NCCL's thread alone");
  return device;
}

// Where the transport has NICs of which /sys knows nothing (simulated ones): all in one device.
NetDevice unlisted_device() {
  NetDevice device;
  device.name = "gdrx_verbs";
  device.guid = 1;
  device.speed = kUnlistedSpeed;
  device.description = "verbs, every port";
  return device;
}

}  // namespace

Result<std::shared_ptr<Fabric>> open_sockets(const Config& config, const Log& log) {
  if (config.transport == "ucx" || config.transport == "tcp") {
    return open_fabric(config.transport, config, log);
  }
  return open_split_fabric(host_id(config), config, log);
}

Result<DeviceSet> find_devices(const Config& config, const Log& log) {
  DeviceSet set;
  const std::string& wanted = config.hca.empty() ? config.ib.hca : config.hca;
  if (config.transport != "ucx" && config.transport != "tcp") {
    for (NetDevice& port : GDRX_TRY(list_rdma_ports("", wanted))) {
      set.devices.push_back(std::move(port));
    }
    auto opened = open_fabric("verbs", config, log);
    if (!opened && config.transport == "verbs") return tl::unexpected(opened.error());
    if (opened && set.devices.empty() && config.transport == "verbs") {
      set.devices.push_back(unlisted_device());
    }
    set.fabric = opened && !set.devices.empty() ? "verbs" : "";
    if (set.fabric.empty()) set.devices.clear();
  }
  if (set.fabric.empty()) {
    const std::shared_ptr<Fabric> sockets = GDRX_TRY(open_sockets(config, log));
    set.fabric = "ucx";
    set.devices.push_back(GDRX_TRY(ucx_device(config, sockets->describe())));
  }
  for (NetDevice& device : set.devices) {
    device.reg_is_global = set.fabric == "verbs";  // one registration for all of a device context
    if (config.net_speed > 0) device.speed = config.net_speed;
  }
  return set;
}

}  // namespace gdrx::net
