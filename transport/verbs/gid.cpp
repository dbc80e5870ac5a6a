// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/gid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace gdrx::verbs {
namespace {

bool in_range(const ibv_gid& gid, const GidWish& wish) {
  for (int bit = 0; bit < wish.bits; bit += 8) {
    const auto at = static_cast<std::size_t>(bit / 8);
    const int rest = std::min(8, wish.bits - bit);
    const auto mask = static_cast<std::uint8_t>(0xff << (8 - rest));
    if (((gid.raw[at] ^ wish.prefix[at]) & mask) != 0) return false;
  }
  return true;
}

auto score(const Gid& gid, bool ethernet, const GidWish& wish) {
  int version = 0;
  if (ethernet && gid.type == ~0U) version = 1;
  if (ethernet && gid.type != ~0U) {
    version = (gid.type == IBV_GID_TYPE_ROCE_V2) == (wish.version == 2) ? 0 : 2;
  }
  return std::tuple(!in_range(gid.raw, wish), is_link_local(gid.raw) && ethernet, version,
                    ethernet && is_ipv4(gid.raw) == wish.ipv6, gid.index);
}

}  // namespace

bool is_zero(const ibv_gid& gid) noexcept {
  return std::all_of(std::begin(gid.raw), std::end(gid.raw), [](auto byte) { return byte == 0; });
}

bool is_link_local(const ibv_gid& gid) noexcept {
  return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

bool is_ipv4(const ibv_gid& gid) noexcept {
  return std::all_of(gid.raw, gid.raw + 10, [](auto byte) { return byte == 0; }) &&
         gid.raw[10] == 0xff && gid.raw[11] == 0xff;
}

std::string to_string(const ibv_gid& gid) {
  if (is_ipv4(gid)) {
    return fmt::format("{}.{}.{}.{}", gid.raw[12], gid.raw[13], gid.raw[14], gid.raw[15]);
  }
  std::string text;
  for (std::size_t i = 0; i < 16; i += 2) {
    text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", gid.raw[i], gid.raw[i + 1]);
  }
  return text;
}

std::optional<Gid> choose_gid(std::span<const Gid> readable, bool ethernet, const GidWish& wish) {
  std::optional<Gid> best;
  for (const Gid& gid : readable) {
    if (is_zero(gid.raw)) continue;
    if (!best || score(gid, ethernet, wish) < score(*best, ethernet, wish)) best = gid;
  }
  return best;
}

}  // namespace gdrx::verbs
