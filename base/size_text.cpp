// SPDX-License-Identifier: Apache-2.0
#include "base/size_text.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>

namespace gdrx {

std::optional<Bytes> read_size(std::string_view text) noexcept {
  constexpr std::string_view kUnits = "KMGT";
  constexpr Bytes kMost = Bytes{1} << 50;
  Bytes value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  Bytes unit = 1;
  if (!text.empty()) {
    const int letter = std::toupper(static_cast<unsigned char>(text.front()));
    if (const auto at = kUnits.find(static_cast<char>(letter)); at != std::string_view::npos) {
      unit = Bytes{1} << (10 * (at + 1));
      text.remove_prefix(1);
      if (text == "iB") text = {};
    }
  }
  if (text == "B") text = {};
  if (!text.empty() || value > kMost / unit) return std::nullopt;
  return value * unit;
}

std::string size_text(Bytes bytes) {
  constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  double value = static_cast<double>(bytes);
  while (value >= 10000 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
  return fmt::format("{:.{}f} {}", value, whole ? 0 : 1, kUnits[unit]);
}

}  // namespace gdrx
