// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/striper.hpp"

#include <algorithm>

namespace gdrx::verbs {

Stripes stripe(Bytes payload, std::span<const RailLoad> rails) noexcept {
  std::array<double, kMaxStripes> share{};
  std::array<bool, kMaxStripes> used{};
  const std::size_t count = std::min(rails.size(), kMaxStripes);
  for (std::size_t i = 0; i < count; ++i) used[i] = rails[i].weight > 0;
  // Each round drops the rail that would get least, until all that remain get enough.
  std::size_t last = count;
  while (true) {
    double weights = 0;
    double total = static_cast<double>(payload);
    std::size_t left = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!used[i]) continue;
      weights += rails[i].weight;
      total += static_cast<double>(rails[i].outstanding);
      last = i;
      ++left;
    }
    if (left == 0) return {};
    std::size_t least = count;
    for (std::size_t i = 0; i < count; ++i) {
      if (!used[i]) continue;
      share[i] = total * rails[i].weight / weights - static_cast<double>(rails[i].outstanding);
      if (least == count || share[i] < share[least]) least = i;
    }
    if (left == 1 || share[least] >= static_cast<double>(kLeastStripe)) break;
    used[least] = false;
  }
  Stripes result;
  Bytes offset = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!used[i]) continue;
    Bytes bytes = static_cast<Bytes>(share[i]) / kStripeAlign * kStripeAlign;
    bytes = i == last ? payload - offset : std::min(bytes, payload - offset);
    result.item[result.count++] = {static_cast<std::uint8_t>(i), offset, bytes};
    offset += bytes;
  }
  return result;
}

}  // namespace gdrx::verbs
