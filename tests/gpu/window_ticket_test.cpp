// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/window_ticket.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace gdrx::gpu {
namespace {

WindowTicket sample() {
  WindowTicket ticket;
  ticket.process = 7;
  ticket.pointer = 0x7f0000300000;
  ticket.bytes = 3 << 20;
  ticket.offset = 1 << 20;
  ticket.next_id = 5;
  ticket.sharing = Sharing::descriptors;
  ticket.listener.name[3] = 9;
  ticket.listener.nonce[15] = 8;
  ticket.segments = {2 << 20, 2 << 20};
  return ticket;
}

WindowTicket of_bytes(std::uint64_t bytes, std::uint64_t next_id, std::uint64_t again = 0) {
  WindowTicket ticket;
  ticket.bytes = bytes;
  ticket.next_id = next_id;
  ticket.again = again;
  return ticket;
}

TEST(WindowTicket, ComesBackAsItWas) {
  const WindowTicket before = sample();
  const auto after = decode_window_ticket(encode(before));
  ASSERT_TRUE(after) << after.error().what;
  EXPECT_EQ(after->process, before.process);
  EXPECT_EQ(after->pointer, before.pointer);
  EXPECT_EQ(after->bytes, before.bytes);
  EXPECT_EQ(after->offset, before.offset);
  EXPECT_EQ(after->next_id, before.next_id);
  EXPECT_EQ(after->sharing, before.sharing);
  EXPECT_EQ(after->listener.name, before.listener.name);
  EXPECT_EQ(after->listener.nonce, before.listener.nonce);
  EXPECT_EQ(after->segments, before.segments);
}

TEST(WindowTicket, OfAnyOtherLengthIsRefused) {
  const Blob whole = encode(sample());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(decode_window_ticket(std::span(whole).first(length))) << length;
  }
  Blob longer = whole;
  longer.push_back({});
  EXPECT_FALSE(decode_window_ticket(longer));
}

TEST(WindowTicket, AnyFlippedByteIsRefusedOrStillWithinItsSegments) {
  const Blob whole = encode(sample());
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const unsigned flip : {0x01U, 0x80U, 0xffU}) {
      Blob changed = whole;
      changed[at] ^= static_cast<std::byte>(flip);
      const auto ticket = decode_window_ticket(changed);
      if (!ticket) {
        ++refused;
        continue;
      }
      std::uint64_t mapped = 0;
      for (const std::uint64_t segment : ticket->segments) mapped += segment;
      EXPECT_LE(ticket->offset, mapped) << at;
      if (!ticket->segments.empty()) {
        EXPECT_LE(ticket->bytes, mapped - ticket->offset) << at;
      }
    }
  }
  EXPECT_GT(refused, 50);
}

TEST(WindowTicket, SizesThatOverflowAreRefused) {
  WindowTicket ticket = sample();
  ticket.segments = {UINT64_MAX - 1, 2 << 20};
  EXPECT_FALSE(decode_window_ticket(encode(ticket)));
  ticket = sample();
  ticket.bytes = UINT64_MAX - ticket.offset + 1;
  EXPECT_FALSE(decode_window_ticket(encode(ticket)));
  ticket = sample();
  ticket.segments = {};
  EXPECT_FALSE(decode_window_ticket(encode(ticket)));
  ticket = sample();
  ticket.segments[1] = 0;
  EXPECT_FALSE(decode_window_ticket(encode(ticket)));
  ticket = sample();
  ticket.bytes = 0;
  EXPECT_FALSE(decode_window_ticket(encode(ticket)));
}

TEST(WindowPlan, TakesAnIdThatIsFreeOnEveryRank) {
  const std::vector<WindowTicket> tickets{of_bytes(64, 3), of_bytes(64, 9), of_bytes(64, 4)};
  const auto plan = plan_window(tickets);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->id, 9);
  EXPECT_FALSE(plan->again);
}

TEST(WindowPlan, OfTheSameRangeEverywhereIsTheSameWindow) {
  const std::vector<WindowTicket> tickets{of_bytes(64, 3, 2), of_bytes(64, 3, 2)};
  const auto plan = plan_window(tickets);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->id, 2);
  EXPECT_TRUE(plan->again);
}

TEST(WindowPlan, NamesRanksThatDiffer) {
  const auto sizes = plan_window(std::vector{of_bytes(64, 1), of_bytes(64, 1), of_bytes(65, 1)});
  ASSERT_FALSE(sizes);
  EXPECT_EQ(sizes.error().code, Errc::mismatch);
  EXPECT_NE(sizes.error().what.find("rank 0 registers 64 bytes and rank 2 registers 65"),
            std::string::npos)
      << sizes.error().what;
  const auto first = plan_window(std::vector{of_bytes(64, 3, 2), of_bytes(64, 3)});
  ASSERT_FALSE(first);
  EXPECT_NE(first.error().what.find("rank 0 registers a range that it has registered already, "
                                    "rank 1 a new one"),
            std::string::npos)
      << first.error().what;
  const auto last = plan_window(std::vector{of_bytes(64, 3), of_bytes(64, 3, 1)});
  ASSERT_FALSE(last);
  EXPECT_NE(last.error().what.find("rank 1 registers a range that it has registered already, "
                                   "rank 0 a new one"),
            std::string::npos)
      << last.error().what;
  const auto two = plan_window(std::vector{of_bytes(64, 3, 1), of_bytes(64, 3, 2)});
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().what.find("two different ranges"), std::string::npos) << two.error().what;
}

TEST(WindowPlace, IsAnotherForEveryOtherPlaceAndNeverZero) {
  std::set<std::uint64_t> places;
  std::size_t made = 0;
  for (const std::uint64_t input : {1, 2, 3}) {
    for (const std::uint64_t output : {1, 2, 3}) {
      for (const std::uint64_t from : {0, 1, 16, 1 << 20}) {
        for (const std::uint64_t to : {0, 1, 16, 1 << 20}) {
          const std::uint64_t place = place_in_windows(input, from, output, to);
          EXPECT_NE(place, 0);
          EXPECT_EQ(place, place_in_windows(input, from, output, to));
          places.insert(place);
          ++made;
        }
      }
    }
  }
  EXPECT_EQ(places.size(), made);
}

}  // namespace
}  // namespace gdrx::gpu
