// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/subnet.hpp"

#include <ifaddrs.h>
#include <netinet/in.h>

#include <bit>
#include <cstring>

#include "transport/verbs/gid.hpp"

namespace gdrx::verbs {
namespace {

constexpr int kMapped = 96;  // bits before the IPv4 address in a GID

int bits_in(const void* mask, std::size_t bytes) {
  int bits = 0;
  const auto* at = static_cast<const unsigned char*>(mask);
  for (std::size_t i = 0; i < bytes; ++i) bits += std::popcount(at[i]);
  return bits;
}

int bits_of(const ifaddrs& entry, const ibv_gid& gid) {
  if (entry.ifa_addr == nullptr || entry.ifa_netmask == nullptr) return 0;
  if (entry.ifa_addr->sa_family == AF_INET && is_ipv4(gid)) {
    const auto* address = reinterpret_cast<const sockaddr_in*>(entry.ifa_addr);
    const auto* mask = reinterpret_cast<const sockaddr_in*>(entry.ifa_netmask);
    if (std::memcmp(&address->sin_addr, gid.raw + 12, 4) != 0) return 0;
    return kMapped + bits_in(&mask->sin_addr, 4);
  }
  if (entry.ifa_addr->sa_family == AF_INET6) {
    const auto* address = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr);
    const auto* mask = reinterpret_cast<const sockaddr_in6*>(entry.ifa_netmask);
    if (std::memcmp(&address->sin6_addr, gid.raw, 16) == 0) return bits_in(&mask->sin6_addr, 16);
  }
  return 0;
}

}  // namespace

int subnet_bits_of(const ibv_gid& gid) {
  ifaddrs* first = nullptr;
  if (is_link_local(gid) || getifaddrs(&first) != 0) return 0;
  int bits = 0;
  for (const ifaddrs* entry = first; entry != nullptr && bits == 0; entry = entry->ifa_next) {
    bits = bits_of(*entry, gid);
  }
  freeifaddrs(first);
  return bits < 128 ? bits : 0;  // an address without neighbours is reached by routers
}

}  // namespace gdrx::verbs
