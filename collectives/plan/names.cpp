// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "gdrx/plan.hpp"

namespace gdrx::plan {
namespace {

constexpr std::array<std::string_view, kAlgorithmCount> kNames{"ring", "tree", "halving-doubling",
                                                               "one-shot", "two-shot"};

}  // namespace

std::string_view to_string(Algorithm algorithm) noexcept {
  const auto i = static_cast<std::size_t>(algorithm);
  return i < kNames.size() ? kNames[i] : "unknown algorithm";
}

std::optional<Algorithm> parse_algorithm(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Algorithm>(i);
  }
  return std::nullopt;
}

}  // namespace gdrx::plan
