// SPDX-License-Identifier: Apache-2.0
#include "tools/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/size_text.hpp"

namespace gdrx::tools {
namespace {

// The number at the front of `text`, which keeps what follows it.
template <class T>
bool take_number(std::string_view& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

Result<Bytes> parse_size(std::string_view option, std::string_view text) {
  if (const auto bytes = read_size(text)) return *bytes;
  return fail(Errc::invalid_argument,
              fmt::format("{} takes a size such as 4096, 64K or 1M, not '{}'", option, text));
}

Result<double> parse_us(std::string_view option, std::string_view text) {
  struct Unit {
    std::string_view name;
    double us;
  };
  constexpr std::array<Unit, 5> kUnits{{{"", 1}, {"us", 1}, {"ns", 1e-3}, {"ms", 1e3}, {"s", 1e6}}};
  std::string_view rest = text;
  double value = 0;
  if (take_number(rest, value) && std::isfinite(value) && value >= 0) {
    for (const Unit& unit : kUnits) {
      if (unit.name == rest) return value * unit.us;
    }
  }
  return fail(Errc::invalid_argument,
              fmt::format("{} takes a duration such as 2us or 300ns, not '{}'", option, text));
}

Result<double> parse_positive(std::string_view option, std::string_view text) {
  std::string_view rest = text;
  double value = 0;
  if (take_number(rest, value) && rest.empty() && std::isfinite(value) && value > 0) return value;
  return fail(Errc::invalid_argument,
              fmt::format("{} takes a number over 0, not '{}'", option, text));
}

}  // namespace gdrx::tools
