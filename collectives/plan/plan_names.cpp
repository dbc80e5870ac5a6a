// SPDX-License-Identifier: Apache-2.0
#include "gdrx/plan.hpp"

namespace gdrx::plan {
std::string_view to_string(Algorithm algorithm) noexcept {
  const auto i = static_cast<std::size_t>(algorithm);
  return i < kAlgorithmNames.size() ? kAlgorithmNames[i] : "unknown algorithm";
}

std::optional<Algorithm> parse_algorithm(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kAlgorithmNames.size(); ++i) {
    if (kAlgorithmNames[i] == name) return static_cast<Algorithm>(i);
  }
  return std::nullopt;
}

}  // namespace gdrx::plan
