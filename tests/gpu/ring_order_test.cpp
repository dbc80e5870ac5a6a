// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/ring_order.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace gdrx::gpu {
namespace {

std::vector<Ticket> on_buses(const std::vector<std::uint32_t>& buses) {
  std::vector<Ticket> tickets;
  for (const std::uint32_t bus : buses) tickets.emplace_back().bus = bus;
  return tickets;
}

// The ranks as the ring passes them, from position 0 on, by each rank's own answer.
std::vector<int> around(const std::vector<Ticket>& tickets) {
  std::vector<int> order(tickets.size(), -1);
  for (int rank = 0; rank < static_cast<int>(tickets.size()); ++rank) {
    const RingPlace place = ring_place(tickets, Rank{rank});
    order.at(static_cast<std::size_t>(place.position)) = rank;
    EXPECT_EQ(ring_place(tickets, Rank{place.right}).left, rank);
    EXPECT_EQ(ring_place(tickets, Rank{place.right}).position,
              (place.position + 1) % static_cast<int>(tickets.size()));
  }
  return order;
}

TEST(RingOrder, FollowsTheBus) {
  EXPECT_EQ(around(on_buses({0x10, 0x20, 0x30, 0x40})), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(around(on_buses({0x40, 0x10, 0x30, 0x20})), (std::vector{1, 3, 2, 0}));
}

TEST(RingOrder, RanksOfOneGpuStandTogether) {
  EXPECT_EQ(around(on_buses({1, 2, 1, 2, 1, 2, 1, 2})), (std::vector{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(around(on_buses({7, 7, 7})), (std::vector{0, 1, 2}));
}

// As in a guest whose GPUs all seem to be at one place.
TEST(RingOrder, RanksOfOneGpuStandTogetherWhereBusesDoNotTell) {
  auto tickets = on_buses({5, 5, 5, 5});
  tickets[0].device[0] = tickets[2].device[0] = 9;
  EXPECT_EQ(around(tickets), (std::vector{1, 3, 0, 2}));
}

TEST(RingOrder, OneRankIsItsOwnNeighbour) {
  const RingPlace alone = ring_place(on_buses({3}), Rank{0});
  EXPECT_EQ(alone.position, 0);
  EXPECT_EQ(alone.left, 0);
  EXPECT_EQ(alone.right, 0);
}

TEST(RingOrder, DomainsGoBeforeBusesBeforeDevices) {
  EXPECT_LT(bus_place(0, 0xff, 31), bus_place(1, 0, 0));
  EXPECT_LT(bus_place(0, 1, 31), bus_place(0, 2, 0));
  EXPECT_LT(bus_place(0x10000, 0, 0), bus_place(0x10000, 0, 1));
}

}  // namespace
}  // namespace gdrx::gpu
