// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/interface.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

namespace gdrx {
namespace {

// The interface of the IPv4 default route, from /proc/net/route: destination and mask zero.
std::string default_route_interface() {
  std::ifstream table("/proc/net/route");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string name;
    std::string destination;
    fields >> name >> destination;
    if (destination == "00000000") return name;
  }
  return {};
}

bool is_container_bridge(std::string_view name) {
  for (const std::string_view prefix : {"docker", "virbr", "veth", "br-", "cni", "flannel"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

bool is_link_local(const SocketAddress& address) {
  return address.family == 6 && address.ip[0] == 0xfe && (address.ip[1] & 0xc0) == 0x80;
}

bool listed(std::string_view name, std::string_view list, bool exact) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    if (!item.empty() && (exact ? name == item : name.starts_with(item))) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

// Lower is better; IPv4 before IPv6 on the same interface.
int rank_of(const Interface& entry) {
  int rank = entry.address.family == 6 ? 1 : 0;
  if (entry.loopback) return rank + 30;
  if (is_container_bridge(entry.name)) return rank + 20;
  return entry.default_route ? rank : rank + 10;
}

}  // namespace

std::vector<Interface> list_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  const std::string route = default_route_interface();
  std::vector<Interface> all;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0) continue;
    const auto address = from_sockaddr(entry->ifa_addr);
    if (!address || is_link_local(*address)) continue;
    all.push_back({entry->ifa_name, *address, (entry->ifa_flags & IFF_LOOPBACK) != 0,
                   entry->ifa_name == route});
  }
  return all;
}

Result<Interface> choose_interface(std::span<const Interface> all, std::string_view wanted) {
  const bool excludes = wanted.starts_with('^');
  const bool exact = wanted.starts_with('=');
  const std::string_view list = excludes || exact ? wanted.substr(1) : wanted;
  const Interface* best = nullptr;
  for (const Interface& entry : all) {
    if (!list.empty() && listed(entry.name, list, exact) == excludes) continue;
    if (best == nullptr || rank_of(entry) < rank_of(*best)) best = &entry;
  }
  if (best != nullptr) return *best;
  std::string names;
  for (const Interface& entry : all) names += (names.empty() ? "" : ", ") + entry.name;
  return fail(Errc::invalid_argument,
              fmt::format("GDRX_SOCKET_IFNAME={} fits no interface that is up: there are {}",
                          wanted, names.empty() ? "none" : names));
}

}  // namespace gdrx
