// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/gid_indexes.hpp"

#include <fmt/format.h>

#include "transport/verbs/fields.hpp"

namespace gdrx::verbs {
namespace {

constexpr int kMost = 255;  // ports have 8 bits, and so has ibv_global_route::sgid_index

}  // namespace

Result<GidIndexes> GidIndexes::parse(std::string_view text) {
  GidIndexes indexes;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view item = next_field(rest, ',');
    if (item.empty()) continue;
    Entry entry;
    std::string_view value = item;
    bool named_well = true;
    if (const auto equals = item.find('='); equals != std::string_view::npos) {
      std::string_view name = item.substr(0, equals);
      value.remove_prefix(equals + 1);
      if (const auto colon = name.find(':'); colon != std::string_view::npos) {
        const auto port = whole_number(name.substr(colon + 1), kMost);
        named_well = port.has_value();
        entry.port = port.value_or(0);
        name = name.substr(0, colon);
      }
      entry.device = std::string(name);
      named_well = named_well && !name.empty();
    }
    const auto index = whole_number(value, kMost);
    if (!named_well || !index) {
      return fail(Errc::invalid_argument,
                  fmt::format("GDRX_GID_INDEX: '{}' is not like mlx5_0=3,mlx5_1:1=5 or 3", item));
    }
    entry.index = static_cast<std::uint32_t>(*index);
    indexes.entries_.push_back(std::move(entry));
  }
  return indexes;
}

std::optional<std::uint32_t> GidIndexes::of(std::string_view device, std::uint8_t port) const {
  const Entry* best = nullptr;
  const auto exactness = [](const Entry& entry) {
    return (entry.device.empty() ? 0 : 1) + (entry.port == 0 ? 0 : 1);
  };
  for (const Entry& entry : entries_) {
    const bool fits =
        (entry.device.empty() || entry.device == device) && (entry.port == 0 || entry.port == port);
    if (fits && (best == nullptr || exactness(entry) > exactness(*best))) best = &entry;
  }
  return best == nullptr ? std::nullopt : std::optional(best->index);
}

}  // namespace gdrx::verbs
