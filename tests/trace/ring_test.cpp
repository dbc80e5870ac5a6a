// SPDX-License-Identifier: Apache-2.0
#include "collectives/trace/event_ring.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace gdrx::trace {
namespace {

Event event(std::uint32_t index) {
  Event made;
  made.kind = Kind::chunk;
  made.row = lane_row(3);
  made.name = "chunk";
  made.algorithm = "ring";
  made.bytes = 1000 + index;
  made.peer = 7;
  made.index = index;
  made.communicator = 2;
  made.begin = Instant(Duration(1'000'000 + index));
  return made;
}

TEST(TraceRing, GivesBackWhatWasPutIntoIt) {
  Ring ring(4);
  ring.end(ring.add(event(5)), Duration(77));
  const auto reading = ring.read();
  ASSERT_EQ(reading.events.size(), 1U);
  const Event& got = reading.events[0];
  EXPECT_EQ(got.kind, Kind::chunk);
  EXPECT_EQ(got.row, lane_row(3));
  EXPECT_EQ(got.name, "chunk");
  EXPECT_EQ(got.algorithm, "ring");
  EXPECT_EQ(got.bytes, 1005U);
  EXPECT_EQ(got.peer, 7);
  EXPECT_EQ(got.index, 5U);
  EXPECT_EQ(got.communicator, 2);
  EXPECT_EQ(got.begin, Instant(Duration(1'000'005)));
  EXPECT_EQ(got.length, Duration(77));
}

TEST(TraceRing, KeepsNobodyAndNoIndex) {
  Ring ring(1);
  Event plain = event(0);
  plain.peer = kNobody;
  plain.index = kNoIndex;
  plain.algorithm = {};
  ring.add(plain);
  const Event got = ring.read().events.at(0);
  EXPECT_EQ(got.peer, kNobody);
  EXPECT_EQ(got.index, kNoIndex);
  EXPECT_TRUE(got.algorithm.empty());
  EXPECT_EQ(got.length, kOpen);
}

TEST(TraceRing, KeepsTheLastAndCountsTheRest) {
  Ring ring(8);
  for (std::uint32_t i = 0; i < 100; ++i) ring.add(event(i));
  const auto reading = ring.read();
  EXPECT_EQ(reading.dropped, 92U);
  ASSERT_EQ(reading.events.size(), 8U);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(reading.events[i].index, 92 + i);
}

TEST(TraceRing, TakesABeginningThatIsKnownLater) {
  Ring ring(2);
  const std::uint64_t number = ring.add(event(1));
  ring.set(number, Instant(Duration(5)), Duration(7));
  const Event got = ring.read().events.at(0);
  EXPECT_EQ(got.begin, Instant(Duration(5)));
  EXPECT_EQ(got.length, Duration(7));
  EXPECT_EQ(got.index, 1U);
  ring.add(event(2));
  ring.add(event(3));  // in its place
  ring.set(number, Instant(Duration(5)), Duration(9));
  EXPECT_EQ(ring.read().events.at(1).begin, event(3).begin);
}

TEST(TraceRing, AnEndThatComesAfterItsEventWasOverwrittenHitsNoOther) {
  Ring ring(2);
  const std::uint64_t old = ring.add(event(0));
  ring.add(event(1));
  ring.add(event(2));
  ring.end(old, Duration(5));
  for (const Event& kept : ring.read().events) EXPECT_EQ(kept.length, kOpen) << kept.index;
}

// Every field follows from the index: an event made of two would show.
TEST(TraceRing, AReaderSeesWholeEventsWhileOthersWrite) {
  Ring ring(16);
  std::atomic<bool> stop{false};
  std::vector<std::jthread> writers;
  for (std::uint32_t writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&] {
      for (std::uint32_t i = 0; !stop.load(std::memory_order_relaxed); ++i) ring.add(event(i));
    });
  }
  // Until enough was seen: on a loaded machine a fixed number of reads ends before a writer starts.
  constexpr std::uint64_t kEnough = 20'000;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::uint64_t seen = 0;
  while (seen < kEnough && std::chrono::steady_clock::now() < deadline) {
    for (const Event& got : ring.read().events) {
      ++seen;
      ASSERT_EQ(got.bytes, 1000ULL + got.index);
      ASSERT_EQ(got.begin, Instant(Duration(1'000'000 + got.index)));
      ASSERT_EQ(got.name, "chunk");
    }
  }
  stop.store(true, std::memory_order_relaxed);
  EXPECT_GE(seen, kEnough);
}

}  // namespace
}  // namespace gdrx::trace
