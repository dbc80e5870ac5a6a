// SPDX-License-Identifier: Apache-2.0
// Bus ids and link speeds: the two number formats of PCI.
#include <array>
#include <charconv>

#include "fmt/format.h"
#include "gdrx/topology.hpp"

namespace gdrx::topo {
namespace {

std::optional<std::uint32_t> hex(std::string_view text, std::uint32_t largest) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  if (text.empty() || text.size() > 8) return std::nullopt;
  const auto [stop, error] = std::from_chars(text.data(), end, value, 16);
  if (error != std::errc{} || stop != end || value > largest) return std::nullopt;
  return value;
}

}  // namespace

std::optional<BusId> parse_bus_id(std::string_view text) {
  const auto dot = text.rfind('.');
  const auto last = text.rfind(':', dot);
  if (dot == text.npos || last == text.npos) return std::nullopt;
  const auto first = last == 0 ? text.npos : text.rfind(':', last - 1);
  const auto bus_begin = first == text.npos ? 0 : first + 1;
  const auto domain =
      first == text.npos ? std::optional<std::uint32_t>(0) : hex(text.substr(0, first), UINT32_MAX);
  const auto bus = hex(text.substr(bus_begin, last - bus_begin), 0xff);
  const auto device = hex(text.substr(last + 1, dot - last - 1), 0x1f);
  const auto function = hex(text.substr(dot + 1), 7);
  if (!domain || !bus || !device || !function) return std::nullopt;
  return BusId{*domain, static_cast<std::uint8_t>(*bus), static_cast<std::uint8_t>(*device),
               static_cast<std::uint8_t>(*function)};
}

std::string to_string(const BusId& bus) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", bus.domain, bus.bus, bus.device, bus.function);
}

std::optional<double> gbytes(const Link& link) {
  if (link.total > 0) return link.total;
  if (link.gigatransfers <= 0 || link.width <= 0) return std::nullopt;
  // Line coding: 8b/10b to 5 GT/s, 128b/130b to 32 GT/s, 242 of 256 bytes of a flit above.
  const double code = link.gigatransfers < 6    ? 8.0 / 10
                      : link.gigatransfers < 40 ? 128.0 / 130
                                                : 242.0 / 256;
  return link.gigatransfers * code / 8 * link.width;
}

}  // namespace gdrx::topo
