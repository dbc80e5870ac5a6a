// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/hca_filter.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "transport/verbs/fields.hpp"

namespace gdrx::verbs {
namespace {

constexpr int kMostRails = 32767;  // NCCL has 16 bits for it

Result<int> number(std::string_view field, int missing, int most, std::string_view whole) {
  if (field.empty()) return missing;
  if (const auto value = whole_number(field, most)) return *value;
  return fail(Errc::invalid_argument,
              fmt::format("'{}' of '{}' is no number of a port, rail or plane", field, whole));
}

}  // namespace

Result<HcaFilter> HcaFilter::parse(std::string_view text) {
  HcaFilter filter;
  std::string_view rest = text;
  while (!rest.empty() && (rest.front() == '^' || rest.front() == '=')) {
    (rest.front() == '^' ? filter.exclude_ : filter.exact_) = true;
    rest.remove_prefix(1);
  }
  while (!rest.empty()) {
    std::string_view item = next_field(rest, ',');
    if (item.empty()) continue;
    Entry entry;
    entry.name = std::string(next_field(item, ':'));
    entry.port = GDRX_TRY(number(next_field(item, ':'), 0, 255, text));
    entry.place.rail = GDRX_TRY(number(next_field(item, ':'), -1, kMostRails, text));
    entry.place.plane = GDRX_TRY(number(next_field(item, ':'), -1, kMostRails, text));
    if (entry.name.empty()) {
      return fail(Errc::invalid_argument, fmt::format("'{}' has an entry without a name", text));
    }
    filter.entries_.push_back(std::move(entry));
  }
  return filter;
}

const HcaFilter::Entry* HcaFilter::entry_of(std::string_view device, std::uint8_t port) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    const bool same = exact_ ? device == entry.name : device.starts_with(entry.name);
    return same && (entry.port == 0 || entry.port == port);
  });
  return found == entries_.end() ? nullptr : &*found;
}

bool HcaFilter::takes(std::string_view device, std::uint8_t port) const {
  if (entries_.empty()) return true;
  return (entry_of(device, port) != nullptr) != exclude_;
}

HcaFilter::Place HcaFilter::place_of(std::string_view device, std::uint8_t port) const {
  const Entry* entry = entry_of(device, port);
  return entry == nullptr || exclude_ ? Place{} : entry->place;
}

}  // namespace gdrx::verbs
