// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/lowering.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <vector>

#include "gdrx/plan.hpp"

namespace gdrx::gpu {
namespace {

std::vector<Ticket> on_buses(const std::vector<std::uint32_t>& buses) {
  std::vector<Ticket> tickets;
  for (const std::uint32_t bus : buses) tickets.emplace_back().bus = bus;
  return tickets;
}

TEST(Lowering, PositionsFollowTheBus) {
  EXPECT_EQ(positions_of(on_buses({0x10, 0x20, 0x30, 0x40})), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(positions_of(on_buses({0x40, 0x10, 0x30, 0x20})), (std::vector{1, 3, 2, 0}));
}

TEST(Lowering, RanksOfOneGpuStandTogether) {
  EXPECT_EQ(positions_of(on_buses({1, 2, 1, 2, 1, 2, 1, 2})),
            (std::vector{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(positions_of(on_buses({7, 7, 7})), (std::vector{0, 1, 2}));
}

// As in a guest whose GPUs all seem to be at one place.
TEST(Lowering, RanksOfOneGpuStandTogetherWhereBusesDoNotTell) {
  auto tickets = on_buses({5, 5, 5, 5});
  tickets[0].device[0] = tickets[2].device[0] = 9;
  EXPECT_EQ(positions_of(tickets), (std::vector{1, 3, 0, 2}));
}

TEST(Lowering, DomainsGoBeforeBusesBeforeDevices) {
  EXPECT_LT(bus_place(0, 0xff, 31), bus_place(1, 0, 0));
  EXPECT_LT(bus_place(0, 1, 31), bus_place(0, 2, 0));
  EXPECT_LT(bus_place(0x10000, 0, 0), bus_place(0x10000, 0, 1));
}

// Ranks by position: in order, reversed, and dealt out.
std::vector<std::vector<std::int32_t>> orders(std::int32_t n) {
  std::vector<std::int32_t> up(static_cast<std::size_t>(n));
  std::iota(up.begin(), up.end(), 0);
  std::vector<std::int32_t> dealt;
  for (std::int32_t first = 0; first < 3; ++first) {
    for (std::int32_t rank = first; rank < n; rank += 3) dealt.push_back(rank);
  }
  return {up, {up.rbegin(), up.rend()}, dealt};
}

TEST(Lowering, ARingPassesEveryPositionOnce) {
  for (std::int32_t n = 1; n <= kMaxRanks; ++n) {
    for (const auto& ranks : orders(n)) {
      for (std::int32_t position = 0; position < n; ++position) {
        const auto at = [&](std::int32_t where) {
          return ranks[static_cast<std::size_t>((where + n) % n)];
        };
        const auto place = ring_place(ranks, Rank{at(position)});
        ASSERT_TRUE(place);
        EXPECT_EQ(place->position, position);
        EXPECT_EQ(place->left, at(position - 1));
        EXPECT_EQ(place->right, at(position + 1));
      }
    }
  }
}

// Each rank's place is its own, so they have to fit together; and who is inner in both trees sends
// twice as much as the others.
TEST(Lowering, TreesHoldEveryRankOnceAndFitTogether) {
  for (std::int32_t n = 2; n <= kMaxRanks; ++n) {
    for (const auto& ranks : orders(n)) {
      int inner_in_both = 0;
      std::map<int, int> inner;
      for (int tree = 0; tree < 2; ++tree) {
        std::map<std::int32_t, TreePlace> places;
        int roots = 0;
        for (std::int32_t rank = 0; rank < n; ++rank) {
          const auto place = tree_place(ranks, Rank{rank}, tree);
          ASSERT_TRUE(place);
          places[rank] = *place;
          roots += place->parent < 0 ? 1 : 0;
          inner[rank] += place->children[0] >= 0 ? 1 : 0;
        }
        EXPECT_EQ(roots, 1);
        for (const auto& [rank, place] : places) {
          for (int branch = 0; branch < 2; ++branch) {
            const std::int32_t child = place.children[branch];
            if (child < 0) continue;
            EXPECT_EQ(places.at(child).parent, rank);
            EXPECT_EQ(places.at(child).branch, branch);
          }
          EXPECT_TRUE(place.children[0] >= 0 || place.children[1] < 0) << "the first comes first";
          // Up to the root, past nobody twice.
          int steps = 0;
          for (std::int32_t at = rank; places.at(at).parent >= 0; at = places.at(at).parent) {
            ASSERT_LE(++steps, 5) << n << " ranks";
            const TreePlace& above = places.at(places.at(at).parent);
            EXPECT_EQ(above.children[places.at(at).branch], at);
          }
        }
      }
      for (const auto& [rank, trees] : inner) inner_in_both += trees == 2 ? 1 : 0;
      EXPECT_LE(inner_in_both, n % 2 == 0 ? 0 : 1) << n << " ranks";
    }
  }
}

TEST(Lowering, OneRankHasNoNeighbours) {
  const std::vector<std::int32_t> alone{0};
  EXPECT_EQ(ring_place(alone, Rank{0})->right, 0);
  EXPECT_EQ(tree_place(alone, Rank{0}, 1)->parent, -1);
  EXPECT_EQ(tree_place(alone, Rank{0}, 1)->children[0], -1);
}

}  // namespace
}  // namespace gdrx::gpu
