// SPDX-License-Identifier: Apache-2.0
// mlx5_2 comes before mlx5_10.
#pragma once

#include <algorithm>
#include <cctype>
#include <string_view>

namespace gdrx::topo {

inline bool natural_less(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto number = [&](std::string_view& text) {
    std::size_t length = 0;
    while (length < text.size() && digit(text[length])) ++length;
    std::string_view value = text.substr(0, length);
    text.remove_prefix(length);
    while (value.size() > 1 && value.front() == '0') value.remove_prefix(1);
    return value;
  };
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (digit(a.front()) && digit(b.front())) {
      const std::string_view x = number(a);
      const std::string_view y = number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // mlx5_1 and mlx5_01 are still two names
}

}  // namespace gdrx::topo
