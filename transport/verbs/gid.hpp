// SPDX-License-Identifier: Apache-2.0
// Which entry of a port's GID table is used. Pure.
#pragma once

#include <infiniband/verbs.h>
#include <array>
#include <cstdint>

#include <optional>
#include <span>
#include <string>

namespace gdrx::verbs {

struct Gid {
  std::uint32_t index = 0;
  ibv_gid raw{};
  std::uint32_t type = 0;  // ibv_gid_type, ~0u: unknown
};

/// What is preferred among the entries of an Ethernet port.
struct GidWish {
  bool ipv6 = false;                      // else IPv4: switches and firewalls are set up for it
  std::uint32_t version = 2;              // of RoCE
  std::array<std::uint8_t, 16> prefix{};  // this range before all others
  int bits = 0;
};

/// The best of the readable entries: of the range, routable before link-local, then the RoCE
/// version that is wished before unknown ones, the address family, and the lowest index. Nothing if
/// all are zero.
std::optional<Gid> choose_gid(std::span<const Gid> readable, bool ethernet,
                              const GidWish& wish = {});

bool is_zero(const ibv_gid& gid) noexcept;
bool is_link_local(const ibv_gid& gid) noexcept;
bool is_ipv4(const ibv_gid& gid) noexcept;
std::string to_string(const ibv_gid& gid);  // "10.0.0.1", or eight groups of hexadecimal digits

}  // namespace gdrx::verbs
