// SPDX-License-Identifier: Apache-2.0
// The cheapest ring through all places, as costs of symmetric links tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gdrx::topo {

struct LinkCosts {
  std::size_t count = 0;
  std::vector<std::int64_t> of;  // count x count
  std::int64_t operator()(std::size_t a, std::size_t b) const { return of[a * count + b]; }
};

struct CheapRing {
  std::vector<std::size_t> order;  // 0 is first
  std::int64_t cost = 0;
};

inline constexpr std::size_t kMostExact = 16;  // 2^15 sets of places x 15 ends: 4 MB

/// The cheapest of all, and of equal ones the first in the order of the dictionary. 1 to kMostExact
/// places.
CheapRing cheapest_ring(const LinkCosts& costs);

/// A ring that no turn of a section and no move of up to three places makes cheaper, of several
/// starts. The order as it is, where that is as cheap.
CheapRing cheap_ring(const LinkCosts& costs);

}  // namespace gdrx::topo
