// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/ring_order.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

namespace gdrx::gpu {

std::uint32_t bus_place(int domain, int bus, int device) noexcept {
  return static_cast<std::uint32_t>(domain) << 13 | (static_cast<std::uint32_t>(bus) & 0xff) << 5 |
         (static_cast<std::uint32_t>(device) & 0x1f);
}

RingPlace ring_place(std::span<const Ticket> tickets, Rank self) {
  std::vector<std::int32_t> order(tickets.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const Ticket& one = tickets[static_cast<std::size_t>(a)];
    const Ticket& other = tickets[static_cast<std::size_t>(b)];
    return std::tie(one.bus, one.device) < std::tie(other.bus, other.device);
  });
  const auto ranks = order.size();
  const auto position =
      static_cast<std::size_t>(std::find(order.begin(), order.end(), index(self)) - order.begin());
  return {static_cast<std::int32_t>(position), order[(position + ranks - 1) % ranks],
          order[(position + 1) % ranks]};
}

}  // namespace gdrx::gpu
