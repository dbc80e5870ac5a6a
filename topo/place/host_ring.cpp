// SPDX-License-Identifier: Apache-2.0
#include "topo/place/host_ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "topo/place/ring_search.hpp"

namespace gdrx::topo {
namespace {

constexpr double kSlow = 0.7;
constexpr double kNoise = 0.95;

// Of what was measured: ascending, in the middle of its upper half. Of three or four that would be
// the best one, which may be a pair within a machine.
double upper_quartile(std::vector<double> all) {
  if (all.empty()) return 0;
  std::sort(all.begin(), all.end());
  const std::size_t quartile = (3 * (all.size() - 1) + 3) / 4;
  return all[all.size() > 2 ? std::min(quartile, all.size() - 2) : quartile];
}

// Each pair's figure once, host by host.
std::vector<double> rates_of(const HostMatrix& matrix) {
  const std::size_t count = matrix.hosts.size();
  std::vector<double> rates(count * count, 0);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      if (a != b) rates[a * count + b] = both_ways(matrix, a, b);
    }
  }
  return rates;
}

// Steps of 0.7 down from the fastest link.
std::int64_t steps_down(double rate, double fastest) {
  constexpr std::int64_t kMost = 99;
  if (rate <= 0) return kMost;
  const double steps = std::log(fastest / rate) / std::log(1 / kSlow);
  return std::clamp(static_cast<std::int64_t>(std::min(steps, 98.0)), std::int64_t{0}, kMost);
}

// A link that is slower than `least` costs more than all others together.
LinkCosts costs_of(const std::vector<double>& rates, std::size_t count, double least) {
  const double fastest = *std::max_element(rates.begin(), rates.end());
  LinkCosts costs{count, std::vector<std::int64_t>(count * count, 0)};
  for (std::size_t i = 0; i < rates.size(); ++i) {
    costs.of[i] = steps_down(rates[i], fastest);
    if (rates[i] < least) costs.of[i] += 100 * static_cast<std::int64_t>(kMostRingHosts);
  }
  return costs;
}

std::int64_t cost_of(const std::vector<std::size_t>& order, const LinkCosts& costs) {
  std::int64_t cost = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    cost += costs(order[i], order[(i + 1) % order.size()]);
  }
  return cost;
}

bool avoids_all(const CheapRing& ring) {
  return ring.cost < 100 * static_cast<std::int64_t>(kMostRingHosts);
}

// Each host has two links of the ring, and the ring crosses each cut.
double bound_of(const std::vector<double>& rates, std::size_t count) {
  double bound = *std::max_element(rates.begin(), rates.end());
  for (std::size_t a = 0; a < count && count > 2; ++a) {
    std::vector<double> own;
    for (std::size_t b = 0; b < count; ++b) {
      if (a != b) own.push_back(rates[a * count + b]);
    }
    std::nth_element(own.begin(), own.begin() + 1, own.end(), std::greater<>());
    bound = std::min(bound, own[1]);
  }
  // The largest tree of fast links: its slowest is the best that a cut of all hosts leaves.
  std::vector<double> best(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<bool> in(count, false);
  in[0] = true;
  for (std::size_t joined = 1; joined < count; ++joined) {
    std::size_t next = count;
    for (std::size_t b = 0; b < count; ++b) {
      if (!in[b] && (next == count || best[b] > best[next])) next = b;
    }
    bound = std::min(bound, best[next]);
    in[next] = true;
    for (std::size_t b = 0; b < count; ++b) best[b] = std::max(best[b], rates[next * count + b]);
  }
  return bound;
}

using Search = std::function<CheapRing(const LinkCosts&)>;

// A ring, and the greatest rate below which it needs no link.
struct Held {
  std::vector<std::size_t> order;
  double slowest = 0;
};

// Of those that the search finds, or what is held already.
Held best_held(const std::vector<double>& rates, std::size_t count, double bound,
               const Search& search, Held held) {
  std::vector<double> steps;
  for (const double rate : rates) {
    if (rate > held.slowest && rate <= bound) steps.push_back(rate);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  std::size_t least = 0;  // all below hold, none from `fails` on
  for (std::size_t fails = steps.size(); least < fails;) {
    const std::size_t middle = (least + fails) / 2;
    CheapRing found = search(costs_of(rates, count, steps[middle]));
    if (avoids_all(found)) {
      held = {std::move(found.order), steps[middle]};
      least = middle + 1;
    } else {
      fails = middle;
    }
  }
  return held;
}

// The cheapest below noise: the search may lose what it held, as links count otherwise here.
std::vector<std::size_t> least_steps(const LinkCosts& costs, const std::vector<std::size_t>& listed,
                                     const Held& held, const Search& search) {
  std::vector<std::size_t> best = listed;
  for (const auto& order : {search(costs).order, held.order}) {
    if (cost_of(order, costs) < cost_of(best, costs)) best = order;
  }
  return best;
}

}  // namespace

double both_ways(const HostMatrix& matrix, std::size_t a, std::size_t b) {
  const auto& there = matrix.of(a, b);
  const auto& back = matrix.of(b, a);
  if (there && back) return std::min(*there, *back);
  return there ? *there : back.value_or(0);
}

std::vector<SlowLink> slow_links(const HostMatrix& matrix) {
  const std::size_t count = matrix.hosts.size();
  std::vector<double> row(count);
  std::vector<double> column(count);
  for (std::size_t a = 0; a < count; ++a) {
    std::vector<double> sent;
    std::vector<double> received;
    for (std::size_t b = 0; b < count; ++b) {
      if (a != b && matrix.of(a, b)) sent.push_back(*matrix.of(a, b));
      if (a != b && matrix.of(b, a)) received.push_back(*matrix.of(b, a));
    }
    row[a] = upper_quartile(std::move(sent));
    column[a] = upper_quartile(std::move(received));
  }
  std::vector<SlowLink> slow;
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      const double usual = std::max(row[a], column[b]);
      if (a == b || !matrix.of(a, b)) continue;
      const double rate = *matrix.of(a, b);
      if (rate < kSlow * usual || rate <= 0) slow.push_back({a, b, rate, usual});
    }
  }
  return slow;
}

std::vector<std::size_t> slow_hosts(const HostMatrix& matrix, const std::vector<SlowLink>& slow) {
  const std::size_t count = matrix.hosts.size();
  std::vector<std::size_t> measured(count, 0);
  std::vector<std::size_t> bad(count, 0);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      if (a == b || !matrix.of(a, b)) continue;
      ++measured[a];
      ++measured[b];
    }
  }
  for (const SlowLink& link : slow) {
    ++bad[link.from];
    ++bad[link.to];
  }
  std::vector<std::size_t> hosts;
  for (std::size_t a = 0; a < count; ++a) {
    if (measured[a] > 0 && bad[a] == measured[a]) hosts.push_back(a);
  }
  return hosts.size() < count ? hosts : std::vector<std::size_t>();
}

RingRate ring_rate(const HostMatrix& matrix, const std::vector<std::size_t>& order) {
  if (order.size() < 2) return {};
  RingRate slowest{both_ways(matrix, order[0], order[1]), order[0], order[1]};
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::size_t next = order[(i + 1) % order.size()];
    const double rate = both_ways(matrix, order[i], next);
    if (rate < slowest.gigabits) slowest = {rate, order[i], next};
  }
  return slowest;
}

Result<HostRing> ring_of_hosts(const HostMatrix& matrix) {
  const std::size_t count = matrix.hosts.size();
  if (count == 0 || count > kMostRingHosts || matrix.gigabits.size() != count * count) {
    return fail(Errc::invalid_argument,
                fmt::format("a matrix of {} hosts: 1 to {}", count, kMostRingHosts));
  }
  HostRing ring;
  if (count == 1) {
    ring.order = {0};
    ring.exact = true;
    return ring;
  }
  const std::vector<double> rates = rates_of(matrix);
  ring.exact = count <= kMostExact;
  const Search search = ring.exact ? cheapest_ring : cheap_ring;
  ring.bound = bound_of(rates, count);
  std::vector<std::size_t> listed(count);
  std::iota(listed.begin(), listed.end(), std::size_t{0});
  const Held held =
      best_held(rates, count, ring.bound, search, {listed, ring_rate(matrix, listed).gigabits});
  if (ring.exact) ring.bound = held.slowest;
  ring.order = least_steps(costs_of(rates, count, kNoise * held.slowest), listed, held, search);
  ring.slowest = ring_rate(matrix, ring.order);
  return ring;
}

}  // namespace gdrx::topo
