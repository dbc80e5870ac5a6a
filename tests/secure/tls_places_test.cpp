// SPDX-License-Identifier: Apache-2.0
// Where a session puts what came: whole records straight where they are wanted, and nothing beside.
#include <gtest/gtest.h>

#include "tests/secure/session_pair.hpp"
#include "transport/secure/tls_records.hpp"

namespace gdrx {
namespace {

using namespace test;

constexpr std::byte kCanary{0x5c};
constexpr std::size_t kRecord = TlsRecords::kMostPlain;
constexpr std::size_t kBuffer = 1 << 20;

Pair roomy_pair(std::uint64_t records_a_key = 1 << 20) {
  Pair pair = Pair::make(key_of(1), key_of(1),
                         {.buffer = kBuffer, .received = kBuffer, .records_a_key = records_a_key});
  EXPECT_TRUE(pair.shake());
  return pair;
}

// The plaintext that each record on the wire has.
std::vector<std::size_t> cut_of(std::span<const std::byte> wire) {
  std::vector<std::size_t> sizes;
  while (!wire.empty()) {
    const std::size_t whole = TlsRecords::size_of(wire).value();
    sizes.push_back(whole - TlsRecords::kOverhead);
    wire = wire.subspan(whole);
  }
  return sizes;
}

TEST(TlsPlace, OfSomethingReadIsFilledAndNoneBehindItWhereverReadsEnd) {
  const Bytes message = random_bytes(3 * kRecord + 100, 1);
  // Around the ends of records and of what a record holds beside them.
  for (const std::size_t first : {1UL, 15UL, kRecord - 1, kRecord, kRecord + 1, kRecord + 2,
                                  2 * kRecord, 3 * kRecord + 99, 3 * kRecord + 100}) {
    Pair pair = roomy_pair(2);
    ASSERT_EQ(*pair.client.write(message), message.size());
    carry(pair.client, pair.server);
    Bytes got(message.size() + 64, kCanary);
    ASSERT_EQ(*pair.server.read(std::span(got).first(first)), first);
    EXPECT_EQ(got[first], kCanary) << first;
    const auto rest = std::span(got).subspan(first, message.size() - first);
    ASSERT_EQ(*pair.server.read(rest), rest.size()) << first;
    EXPECT_TRUE(std::equal(message.begin(), message.end(), got.begin())) << first;
    EXPECT_EQ(got[message.size()], kCanary) << first;
  }
}

TEST(TlsPlace, OfARecordThatWasChangedIsNotLeftByItsNonsense) {
  Pair pair = roomy_pair();
  const Bytes message = random_bytes(2 * kRecord, 2);
  ASSERT_EQ(*pair.client.write(message), message.size());
  Bytes wire(pair.client.unsent().begin(), pair.client.unsent().end());
  wire[wire.size() - 100] ^= std::byte{1};  // of the second record
  ASSERT_EQ(pair.server.feed(wire), wire.size());
  Bytes got(3 * kRecord, kCanary);
  EXPECT_EQ(*pair.server.read(got), kRecord) << "what came before is right";
  EXPECT_TRUE(pair.server.pending()) << "an error is to be had, although nothing new comes";
  const auto next = pair.server.read(std::span(got).subspan(kRecord));
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, Errc::protocol);
  EXPECT_TRUE(std::equal(got.begin(), got.begin() + kRecord, message.begin()));
  EXPECT_TRUE(std::all_of(got.begin() + 2 * kRecord + 1, got.end(),
                          [](std::byte b) { return b == kCanary; }));
}

TEST(TlsPlace, IsShownAndStaysUntilItIsTaken) {
  Pair pair = roomy_pair();
  const Bytes message = random_bytes(kRecord + 10, 3);
  EXPECT_TRUE(pair.server.peek()->empty());
  ASSERT_EQ(*pair.client.write(message), message.size());
  carry(pair.client, pair.server);
  Bytes got;
  for (const std::size_t some : {10UL, kRecord - 10, 4UL, 6UL}) {
    const auto shown = *pair.server.peek();
    ASSERT_GE(shown.size(), some);
    got.insert(got.end(), shown.begin(), shown.begin() + static_cast<long>(some));
    pair.server.take(some);
  }
  EXPECT_EQ(got, message);
  EXPECT_TRUE(pair.server.peek()->empty());
  pair.client.close();
  carry(pair.client, pair.server);
  EXPECT_EQ(pair.server.peek().error().code, Errc::peer_lost);
}

// What follows a long part would have to be copied from behind it.
TEST(TlsRecord, OfALongPartsEndHoldsNothingElse) {
  Pair pair = roomy_pair();
  Bytes head = random_bytes(40, 4);
  Bytes body = random_bytes(4 * kRecord, 5);
  const std::array<iovec, 4> parts{{{head.data(), head.size()},
                                    {body.data(), body.size()},
                                    {head.data(), head.size()},
                                    {body.data(), 100}}};
  ASSERT_EQ(*pair.client.write(parts), 2 * head.size() + body.size() + 100);
  EXPECT_EQ(cut_of(pair.client.unsent()),
            (std::vector<std::size_t>{kRecord, kRecord, kRecord, kRecord, 40, 140}));
}

}  // namespace
}  // namespace gdrx
