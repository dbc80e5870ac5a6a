// SPDX-License-Identifier: Apache-2.0
// The ring of two ranks by itself, its two sides in one thread or in two.
#include "collectives/exec/pair_ring.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace gdrx::exec {
namespace {

/// A ring of so many ranks, of which this is none's.
struct Sides {
  explicit Sides(int ranks = 2)
      : room(PairRings::room_of(ranks)),
        memory((sizeof(PairRing) + room) / sizeof(RingCell)),
        ring(reinterpret_cast<PairRing*>(memory.data())),
        sender(*ring, Rank{1}, room),
        receiver(*ring, room) {}
  std::size_t room;
  std::vector<RingCell> memory;
  PairRing* ring;
  RingSender sender;
  RingReceiver receiver;

  Result<Progress> send(const std::vector<std::byte>& bytes, std::uint32_t number) {
    return sender.send({.count = bytes.size(), .instance = number, .type = DataType::int8}, bytes);
  }
};

std::vector<std::byte> slice(unsigned number, std::size_t most) {
  std::mt19937 random(number);
  const std::size_t edges[] = {0, 1, 40, 41, 104, 105, most - 1, most};
  const std::size_t size = number % 3 == 0 ? edges[random() % 8] : random() % (most + 1);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Many times round the cells and the room.
void exchange_many(int ranks) {
  constexpr unsigned kSlices = 5000;
  Sides sides(ranks);
  const std::size_t most = PairRings({}, ranks, 0).cut();
  std::jthread sends([&] {
    for (unsigned i = 0; i < kSlices; ++i) {
      const std::vector<std::byte> bytes = slice(i, most);
      while (*sides.send(bytes, i) == Progress::pending) std::this_thread::yield();
    }
  });
  for (unsigned i = 0; i < kSlices; ++i) {
    while (sides.receiver.head() == nullptr) std::this_thread::yield();
    const std::vector<std::byte> expected = slice(i, most);
    const SliceHead head = *sides.receiver.head();
    ASSERT_EQ(head.instance, i);
    ASSERT_EQ(head.count, expected.size());
    std::vector<std::byte> got(expected.size() + 1, std::byte{0xEE});
    sides.receiver.take(got.data(), expected.size());
    ASSERT_EQ(got.back(), std::byte{0xEE});
    got.pop_back();
    ASSERT_EQ(got, expected) << "slice " << i;
  }
}

TEST(PairRing, GivesSlicesOfAllLengthsInTheirOrder) {
  for (const int ranks : {2, 40, kMostRanksWithRings}) exchange_many(ranks);
}

// To their end sooner or later, whatever is sent.
TEST(PairRing, RingsOfAHostTakeFewMegabytes) {
  constexpr std::size_t kMiB = 1024 * 1024;
  EXPECT_EQ(PairRings::room_of(8), kMostRoom);
  for (const int ranks : {2, 8, 9, 32}) EXPECT_LE(PairRings::bytes(ranks), 72 * kMiB) << ranks;
  for (const int ranks : {64, kMostRanksWithRings}) {
    EXPECT_GE(PairRings::room_of(ranks), 2 * kRingSlice);
    EXPECT_LE(PairRings::bytes(ranks), 340 * kMiB) << ranks;
  }
  EXPECT_EQ(PairRings::bytes(kMostRanksWithRings + 1), 0U);
}

TEST(PairRing, TakesAsManyShortSlicesAsItHasCellsAndAsManyLongOnesAsItHasRoom) {
  for (const std::size_t size : {std::size_t{8}, kRingCut}) {
    const std::vector<std::byte> bytes(size);
    Sides sides;
    std::size_t sent = 0;
    while (*sides.send(bytes, 0) == Progress::done) ++sent;
    EXPECT_EQ(sent, size == 8 ? kRingCells : kMostRoom / kRingCut);
    std::vector<std::byte> to(size);
    sides.receiver.take(to.data(), size);
    EXPECT_EQ(*sides.send(bytes, 0), Progress::done);
    EXPECT_EQ(*sides.send(bytes, 0), Progress::pending);
  }
}

TEST(PairRing, RefusesAPeerThatHasTakenWhatItWasNeverGiven) {
  Sides sides;
  while (*sides.send(std::vector<std::byte>(8), 0) == Progress::done) continue;
  for (const std::uint64_t lie : {kRingCells + 1, ~std::uint64_t{0}}) {
    sides.ring->taken = lie;
    const auto sent = sides.send(std::vector<std::byte>(8), 0);
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code, Errc::protocol);
    EXPECT_NE(sent.error().what.find("rank 1"), std::string::npos);
  }
  sides.ring->taken = 3;
  EXPECT_TRUE(sides.send(std::vector<std::byte>(8), 0));
  sides.ring->taken = 2;  // it gives back no less
  EXPECT_FALSE(sides.sender.loan());
}

TEST(PairRing, EndsALoanWhenItsReceiverHasReadOrRefusedIt) {
  Sides sides;
  const std::vector<std::byte> bytes(kRingCut + 1);
  using Loan = RingSender::Loan;
  for (const bool refuses : {false, true, false}) {
    ASSERT_EQ(*sides.sender.lend({.count = bytes.size()}, bytes.data()), Progress::done);
    EXPECT_EQ(*sides.sender.loan(), Loan::out);
    ASSERT_NE(sides.receiver.head(), nullptr);
    EXPECT_NE(sides.receiver.head()->lent, 0);
    EXPECT_EQ(sides.receiver.address(), reinterpret_cast<std::uint64_t>(bytes.data()));
    if (refuses) {
      sides.receiver.refuse();
    } else {
      sides.receiver.give_back();
    }
    EXPECT_EQ(*sides.sender.loan(), refuses ? Loan::refused : Loan::over);
  }
  EXPECT_TRUE(sides.receiver.still_lent());
  sides.sender.withdraw();
  EXPECT_FALSE(sides.receiver.still_lent());
}

}  // namespace
}  // namespace gdrx::exec
