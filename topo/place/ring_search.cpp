// SPDX-License-Identifier: Apache-2.0
#include "topo/place/ring_search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace gdrx::topo {
namespace {

using Order = std::vector<std::size_t>;

std::int64_t cost_of(const LinkCosts& costs, const Order& ring) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < ring.size(); ++i) sum += costs(ring[i], ring[(i + 1) % ring.size()]);
  return sum;
}

// From place 0 always to the cheapest place that is left.
Order nearest_first(const LinkCosts& costs) {
  Order ring{0};
  std::vector<bool> taken(costs.count, false);
  taken[0] = true;
  while (ring.size() < costs.count) {
    std::size_t next = costs.count;
    for (std::size_t to = 1; to < costs.count; ++to) {
      if (taken[to]) continue;
      if (next == costs.count || costs(ring.back(), to) < costs(ring.back(), next)) next = to;
    }
    taken[next] = true;
    ring.push_back(next);
  }
  return ring;
}

std::ptrdiff_t at(std::size_t i) { return static_cast<std::ptrdiff_t>(i); }

// Turns a section around while that makes the ring cheaper.
bool turn_sections(const LinkCosts& costs, Order& ring) {
  bool cheaper = false;
  const std::size_t count = ring.size();
  for (std::size_t i = 0; i + 2 < count; ++i) {
    for (std::size_t j = i + 2; j < count; ++j) {
      const std::size_t after = ring[(j + 1) % count];
      if (after == ring[i]) continue;
      const std::int64_t now = costs(ring[i], ring[i + 1]) + costs(ring[j], after);
      if (costs(ring[i], ring[j]) + costs(ring[i + 1], after) >= now) continue;
      std::reverse(ring.begin() + at(i + 1), ring.begin() + at(j + 1));
      cheaper = true;
    }
  }
  return cheaper;
}

// Moves up to three places that follow each other to where they cost less. Place 0 stays.
bool move_places(const LinkCosts& costs, Order& ring) {
  bool cheaper = false;
  const std::size_t count = ring.size();
  for (std::size_t length = 1; length <= 3 && length + 2 < count; ++length) {
    for (std::size_t i = 1; i + length <= count; ++i) {
      const std::size_t before = ring[i - 1];
      const std::size_t first = ring[i];
      const std::size_t last = ring[i + length - 1];
      const std::size_t after = ring[(i + length) % count];
      const std::int64_t saved = costs(before, first) + costs(last, after) - costs(before, after);
      if (saved <= 0) continue;
      for (std::size_t j = 0; j < count; ++j) {
        const bool own = j + 1 >= i && j < i + length;  // the places themselves, or where they are
        if (own) continue;
        const std::size_t left = ring[j];
        const std::size_t right = ring[(j + 1) % count];
        if (costs(left, first) + costs(last, right) - costs(left, right) >= saved) continue;
        if (j > i) {
          std::rotate(ring.begin() + at(i), ring.begin() + at(i + length),
                      ring.begin() + at(j + 1));
        } else {
          std::rotate(ring.begin() + at(j + 1), ring.begin() + at(i),
                      ring.begin() + at(i + length));
        }
        cheaper = true;
        break;
      }
    }
  }
  return cheaper;
}

// Each change makes the sum less, so this ends.
CheapRing improved(const LinkCosts& costs, Order ring) {
  for (bool more = true; more;) {
    more = turn_sections(costs, ring);
    more = move_places(costs, ring) || more;
  }
  const std::int64_t cost = cost_of(costs, ring);
  return {std::move(ring), cost};
}

// Four sections in another order: what turns and moves do not undo at once.
Order shaken(const Order& ring, std::mt19937_64& random) {
  const std::size_t count = ring.size();
  std::size_t cuts[3];
  for (std::size_t& cut : cuts) cut = 1 + random() % (count - 1);
  std::sort(std::begin(cuts), std::end(cuts));
  Order other(ring.begin(), ring.begin() + at(cuts[0]));
  other.insert(other.end(), ring.begin() + at(cuts[1]), ring.begin() + at(cuts[2]));
  other.insert(other.end(), ring.begin() + at(cuts[0]), ring.begin() + at(cuts[1]));
  other.insert(other.end(), ring.begin() + at(cuts[2]), ring.end());
  return other;
}

}  // namespace

CheapRing cheapest_ring(const LinkCosts& costs) {
  const std::size_t rest = costs.count - 1;
  if (costs.count < 3) {
    Order ring(costs.count);
    std::iota(ring.begin(), ring.end(), std::size_t{0});
    const std::int64_t cost = cost_of(costs, ring);
    return {std::move(ring), cost};
  }
  // least[set * rest + v]: from place v + 1, which is in the set, through all of the set and back
  // to place 0.
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;
  std::vector<std::int64_t> least((std::size_t{1} << rest) * rest, kNever);
  for (std::size_t set = 1; set < std::size_t{1} << rest; ++set) {
    for (std::size_t v = 0; v < rest; ++v) {
      if ((set >> v & 1) == 0) continue;
      const std::size_t others = set ^ std::size_t{1} << v;
      std::int64_t& best = least[set * rest + v];
      if (others == 0) best = costs(v + 1, 0);
      for (std::size_t w = 0; w < rest; ++w) {
        if ((others >> w & 1) == 0) continue;
        best = std::min(best, costs(v + 1, w + 1) + least[others * rest + w]);
      }
    }
  }
  CheapRing ring{{0}, kNever};
  std::size_t set = (std::size_t{1} << rest) - 1;
  for (std::size_t v = 0; v < rest; ++v) {
    ring.cost = std::min(ring.cost, costs(0, v + 1) + least[set * rest + v]);
  }
  for (std::int64_t left = ring.cost; set != 0;) {
    const std::size_t from = ring.order.back();
    std::size_t v = 0;
    while ((set >> v & 1) == 0 || costs(from, v + 1) + least[set * rest + v] != left) ++v;
    left -= costs(from, v + 1);
    ring.order.push_back(v + 1);
    set ^= std::size_t{1} << v;
  }
  return ring;
}

CheapRing cheap_ring(const LinkCosts& costs) {
  Order as_it_is(costs.count);
  std::iota(as_it_is.begin(), as_it_is.end(), std::size_t{0});
  const std::int64_t now = cost_of(costs, as_it_is);
  CheapRing best = improved(costs, as_it_is);
  const auto take = [&best](CheapRing other) {
    if (other.cost < best.cost) best = std::move(other);
  };
  take(improved(costs, nearest_first(costs)));
  // As many more as keep a thousand places within seconds.
  const std::size_t shakes = costs.count < 5 ? 0 : std::min<std::size_t>(60, 4000 / costs.count);
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < shakes && best.cost > 0; ++i) {
    take(improved(costs, shaken(best.order, random)));
  }
  return now <= best.cost ? CheapRing{as_it_is, now} : best;
}

}  // namespace gdrx::topo
