// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/rank_names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdrx {
namespace {

constexpr std::size_t kMostNamed = 8;

}  // namespace

std::string name_ranks(const std::vector<std::int32_t>& ranks) {
  const auto named = static_cast<std::ptrdiff_t>(std::min(ranks.size(), kMostNamed));
  std::string text = fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks",
                                 fmt::join(ranks.begin(), ranks.begin() + named, ", "));
  if (ranks.size() > kMostNamed) text += fmt::format(" and {} more", ranks.size() - kMostNamed);
  return text;
}

std::string name_missing(const std::vector<std::int32_t>& ranks, int size) {
  return fmt::format("{} of {} {} not come", name_ranks(ranks), size,
                     ranks.size() == 1 ? "has" : "have");
}

}  // namespace gdrx
