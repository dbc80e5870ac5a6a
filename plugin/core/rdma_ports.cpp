// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "plugin/core/devices.hpp"
#include "transport/verbs/hca_filter.hpp"

namespace gdrx::net {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "0c42:a103:00d1:2f54", as sysfs has it.
std::uint64_t guid_of(std::string text) {
  std::erase(text, ':');
  std::uint64_t guid = 0;
  std::from_chars(text.data(), text.data() + text.size(), guid, 16);
  return guid;
}

// "100 Gb/sec (4X EDR)"; the number may have a fraction.
int speed_of(const std::string& rate) {
  double gigabits = 0;
  const auto read = std::from_chars(rate.data(), rate.data() + rate.size(), gigabits);
  return read.ec == std::errc() ? static_cast<int>(gigabits * 1000) : 0;
}

// One path for all functions of a card, as NCCL's own network gives it: with a path for each, NCCL
// counts the card's PCIe link once for each. A virtual function's card is what the kernel says it
// is; its number says nothing (in a guest, digits set to zero may name the host bridge).
std::string card_of(const fs::path& device) {
  std::error_code error;
  const fs::path physical = fs::canonical(device / "physfn", error);
  std::string path = (error ? device : physical).string();
  const std::string function = path;
  if (path.size() > 2 && path[path.size() - 2] == '.') path.back() = '0';
  return fs::exists(path + "/vendor", error) ? path : function;
}

NetDevice port_device(const fs::path& hca, int port) {
  const fs::path at = hca / "ports" / std::to_string(port);
  std::error_code error;
  const fs::path pci = fs::canonical(hca / "device", error);
  NetDevice device;
  const std::string name = hca.filename().string();
  device.name = port == 1 ? name : fmt::format("{}:{}", name, port);
  if (!error && fs::exists(pci / "vendor", error)) device.pci_path = card_of(pci);
  device.guid = guid_of(first_line(hca / "node_guid"));
  device.speed = speed_of(first_line(at / "rate"));
  device.port = port;
  device.software = fs::exists(hca / "parent", error);  // the network interface's name
  device.hca = fmt::format("={}:{}", name, port);
  device.description =
      fmt::format("verbs over {}, port {}, {}{}", name, port, first_line(at / "link_layer"),
                  device.software ? ", in software" : "");
  return device;
}

}  // namespace

Result<std::vector<NetDevice>> list_rdma_ports(const std::string& root, const std::string& wanted) {
  const verbs::HcaFilter filter = GDRX_TRY(verbs::HcaFilter::parse(wanted));
  std::vector<NetDevice> devices;
  std::error_code error;
  for (const auto& hca : fs::directory_iterator(root + "/sys/class/infiniband", error)) {
    for (const auto& entry : fs::directory_iterator(hca.path() / "ports", error)) {
      const std::string number = entry.path().filename().string();
      int port = 0;
      std::from_chars(number.data(), number.data() + number.size(), port);
      if (port < 1 || port > 255) continue;
      if (!filter.takes(hca.path().filename().string(), static_cast<std::uint8_t>(port))) continue;
      // "4: ACTIVE": one that is down would be refused when it is used.
      if (!first_line(entry.path() / "state").starts_with("4:")) continue;
      devices.push_back(port_device(hca.path(), port));
      const auto place =
          filter.place_of(hca.path().filename().string(), static_cast<std::uint8_t>(port));
      devices.back().rail = place.rail;
      devices.back().plane = place.plane;
    }
  }
  std::sort(devices.begin(), devices.end(),
            [](const NetDevice& a, const NetDevice& b) { return a.hca < b.hca; });
  return devices;
}

Result<NetDevice> merge(const std::deque<NetDevice>& devices, std::span<const int> parts) {
  if (parts.empty()) return fail(Errc::invalid_argument, "a device of no ports");
  NetDevice merged;
  for (const int index : parts) {
    if (index < 0 || static_cast<std::size_t>(index) >= devices.size() ||
        std::count(parts.begin(), parts.end(), index) != 1) {
      return fail(Errc::invalid_argument, fmt::format("device {} cannot be merged", index));
    }
    const NetDevice& part = devices[static_cast<std::size_t>(index)];
    if (part.hca.empty() || !part.parts.empty()) {
      return fail(Errc::invalid_argument, part.name + " is no single RDMA port");
    }
    if (merged.parts.empty()) {
      merged = part;
    } else {
      merged.name += "+" + part.name;
      merged.hca += "," + part.hca.substr(1);  // one '=' is for all
      merged.description += " and " + part.description;
      merged.speed += part.speed;
      merged.latency = std::max(merged.latency, part.latency);
      merged.pointers &= part.pointers;
      merged.software = merged.software && part.software;
      merged.force_flush = merged.force_flush || part.force_flush;
      if (merged.rail != part.rail) merged.rail = nccl::kUndefined;
      if (merged.plane != part.plane) merged.plane = nccl::kUndefined;
    }
    merged.parts.push_back(index);
  }
  return merged;
}

}  // namespace gdrx::net
