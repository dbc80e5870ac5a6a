// SPDX-License-Identifier: Apache-2.0
// Lists as NCCL's variables have them, taken apart. Pure.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace gdrx::verbs {

/// What stands before the next `separator`, or all; taken off `rest` together with it.
inline std::string_view next_field(std::string_view& rest, char separator) {
  const auto end = rest.find(separator);
  const std::string_view field = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return field;
}

/// A number from 0 to `most`, and nothing beside it.
inline std::optional<int> whole_number(std::string_view text, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && value >= 0 && value <= most ? std::optional(value) : std::nullopt;
}

}  // namespace gdrx::verbs
