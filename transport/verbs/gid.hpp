// SPDX-License-Identifier: Apache-2.0
// Which entry of a port's GID table is used. Pure.
#pragma once

#include <infiniband/verbs.h>
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

/// The best of the readable entries: RoCE v2 before unknown before v1 (on Ethernet), routable
/// before link-local, IPv4 before IPv6 (it is what switches and firewalls are set up for), then the
/// lowest index. Nothing if all are zero.
std::optional<Gid> choose_gid(std::span<const Gid> readable, bool ethernet);

bool is_zero(const ibv_gid& gid) noexcept;
bool is_link_local(const ibv_gid& gid) noexcept;
bool is_ipv4(const ibv_gid& gid) noexcept;
std::string to_string(const ibv_gid& gid);  // "10.0.0.1", or eight groups of hexadecimal digits

}  // namespace gdrx::verbs
