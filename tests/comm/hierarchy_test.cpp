// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/hierarchy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>

namespace gdrx {
namespace {

TEST(Hierarchy, RailsJoinTheRanksOfOnePlaceOfAllHosts) {
  // Ranks dealt to the hosts in turn, as mpirun --map-by node does.
  const std::vector<std::string> hosts{"b", "a", "b", "a", "b", "a"};
  const auto found = hierarchy_of(hosts, Rank{3});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->host, (std::vector<Rank>{Rank{1}, Rank{3}, Rank{5}}));
  EXPECT_EQ(found->rail, (std::vector<Rank>{Rank{2}, Rank{3}}));
  EXPECT_EQ(found->local, 1);
  EXPECT_EQ(found->own_host, 1);
}

TEST(Hierarchy, HostsOfDifferentSizesAreRefused) {
  const std::vector<std::string> hosts{"a", "a", "b"};
  for (int rank = 0; rank < 3; ++rank) {
    const auto found = hierarchy_of(hosts, Rank{rank});
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().what, "the hosts have 2 and 1 ranks: they need as many each");
  }
}

TEST(Hierarchy, OfRanksThatAreAloneAllAreOneRail) {
  const Hierarchy alone = each_alone(3, Rank{1});
  EXPECT_EQ(alone.host, (std::vector<Rank>{Rank{1}}));
  EXPECT_EQ(alone.rail, (std::vector<Rank>{Rank{0}, Rank{1}, Rank{2}}));
  EXPECT_EQ(alone.local, 0);
  EXPECT_EQ(alone.own_host, 1);
}

RC_GTEST_PROP(Hierarchy, EveryRankIsOnceInItsHostAndOnceInItsRail, ()) {
  const int hosts = *rc::gen::inRange(1, 5);
  const int locals = *rc::gen::inRange(1, 5);
  // Any order of the ranks over the hosts.
  std::vector<int> host_of;
  for (int rank = 0; rank < hosts * locals; ++rank) host_of.push_back(rank % hosts);
  const auto seed = *rc::gen::arbitrary<unsigned>();
  std::shuffle(host_of.begin(), host_of.end(), std::mt19937(seed));
  std::vector<std::string> ids;
  for (const int host : host_of) ids.push_back(std::to_string(host));
  for (int rank = 0; rank < hosts * locals; ++rank) {
    const auto found = hierarchy_of(ids, Rank{rank});
    RC_ASSERT(found.has_value());
    RC_ASSERT(found->host[static_cast<std::size_t>(found->local)] == Rank{rank});
    RC_ASSERT(found->rail[static_cast<std::size_t>(found->own_host)] == Rank{rank});
    for (const Rank peer : found->rail) {
      const auto theirs = hierarchy_of(ids, peer);
      RC_ASSERT(theirs->rail == found->rail);
    }
  }
}

// Pieces lie side by side, and so do the parts of each: every byte has one owner.
RC_GTEST_PROP(Pieces, EveryByteIsInOnePartOfOnePiece, ()) {
  const auto bytes = *rc::gen::inRange<std::uint64_t>(1, 200 << 20);
  const int ranks = *rc::gen::inRange(1, 17);
  const auto most = *rc::gen::element<std::uint64_t>(1 << 20, Pieces::kMostPart);
  const Pieces pieces = Pieces::cut(bytes, ranks, most);
  RC_ASSERT(pieces.part <= most);
  std::uint64_t covered = 0;
  for (std::uint64_t number = 0; number < pieces.count(); ++number) {
    const Pieces::Piece piece = pieces.piece(number);
    RC_ASSERT(piece.begin == covered);
    RC_ASSERT(piece.bytes > 0u);
    RC_ASSERT(piece.part <= pieces.part);
    RC_ASSERT(piece.part % 16 == 0u);
    std::uint64_t in_parts = 0;
    for (int rank = 0; rank < ranks; ++rank) in_parts += piece.part_of(rank);
    RC_ASSERT(in_parts == piece.bytes);
    covered += piece.bytes;
  }
  RC_ASSERT(covered == bytes);
}

TEST(Pieces, AreEightOrOfFourMebibytesAPart) {
  EXPECT_EQ(Pieces::cut(1, 4).count(), 1);
  EXPECT_EQ(Pieces::cut(16 << 20, 1).count(), 8);
  EXPECT_EQ(Pieces::cut(std::uint64_t{1} << 30, 2).part, 4 << 20);
  EXPECT_EQ(Pieces::cut(std::uint64_t{1} << 30, 2, 1 << 20).part, 1 << 20);
}

}  // namespace
}  // namespace gdrx
