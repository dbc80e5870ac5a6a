// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/hca_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace gdrx::verbs {

Result<HcaFilter> HcaFilter::parse(std::string_view text) {
  HcaFilter filter;
  std::string_view rest = text;
  while (!rest.empty() && (rest.front() == '^' || rest.front() == '=')) {
    (rest.front() == '^' ? filter.exclude_ : filter.exact_) = true;
    rest.remove_prefix(1);
  }
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    if (item.empty()) continue;
    Entry entry;
    const auto colon = item.find(':');
    entry.name = std::string(item.substr(0, colon));
    if (colon != std::string_view::npos) {
      // A third field (NCCL's rail and plane) groups ports that we group by index.
      std::string_view port = item.substr(colon + 1);
      port = port.substr(0, port.find(':'));
      const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), entry.port);
      if (!port.empty() && (error != std::errc{} || end != port.data() + port.size() ||
                            entry.port < 0 || entry.port > 255)) {
        return fail(Errc::invalid_argument,
                    fmt::format("'{}' of '{}' is no port number", port, text));
      }
    }
    if (entry.name.empty()) {
      return fail(Errc::invalid_argument, fmt::format("'{}' has an entry without a name", text));
    }
    filter.entries_.push_back(std::move(entry));
  }
  return filter;
}

bool HcaFilter::takes(std::string_view device, std::uint8_t port) const {
  if (entries_.empty()) return true;
  const bool listed = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    const bool same = exact_ ? device == entry.name : device.starts_with(entry.name);
    return same && (entry.port == 0 || entry.port == port);
  });
  return listed != exclude_;
}

}  // namespace gdrx::verbs
