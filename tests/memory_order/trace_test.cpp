// SPDX-License-Identifier: Apache-2.0
// The ring of a rank's last events, as its source stands, on a machine that orders nothing by
// itself. Its threads are of one process.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gdrx/clock.hpp"
#include "tests/memory_order/orders.hpp"
// Behind all that has real atomics:
#include "tests/memory_order/atomics.hpp"
#define trace model_trace  // the library has the others
#include "collectives/trace/event_ring.cpp"

namespace gdrx::trace {
namespace {

using model::Named;
using model::require;

Event event(std::uint32_t number, std::int64_t length) {
  Event made;
  made.bytes = number;
  made.index = number;
  made.peer = static_cast<std::int32_t>(number);
  made.communicator = static_cast<std::uint16_t>(number);
  made.begin = Instant(Duration(number));
  made.length = Duration(length);
  return made;
}

bool is_whole(const Event& event) {
  return event.bytes == event.index && event.communicator == event.index &&
         event.peer == static_cast<std::int32_t>(event.index) &&
         event.begin == Instant(Duration(event.index)) && event.length == Duration(event.index);
}

// Nothing on the heap is left where the run ends.
template <class Holds>
bool all_of(const Ring& ring, const Holds& holds) {
  bool all = true;
  for (const Event& event : ring.read().events) all = all && holds(event);
  return all;
}

// Each event is written over the one before.
Named overwritten(Ring& ring) {
  return {"events in one place",
          {[] {},
           {[&] {
              for (std::uint32_t i = 1; i <= 2; ++i) ring.add(event(i, i));
            },
            [&] { require(all_of(ring, is_whole), "parts of two events"); }},
           {}},
          {.preemptions = 2, .stale = 2}};
}

Named two_writers(Ring& ring) {
  return {"events of two threads in one place",
          {[] {},
           {[&] { ring.add(event(1, 1)); }, [&] { ring.add(event(2, 2)); },
            [&] { require(all_of(ring, is_whole), "parts of two events"); }},
           {}},
          {.preemptions = 2, .stale = 1}};
}

// What a GPU has timed is known later.
Named timed_later(Ring& ring) {
  return {"an event that is timed later",
          {[] {},
           {[&] { ring.set(ring.add(event(1, -1)), Instant(Duration(2)), Duration(2)); },
            [&] {
              const auto holds = [](const Event& event) {
                return event.length != Duration(2) || event.begin == Instant(Duration(2));
              };
              require(all_of(ring, holds), "a length without its beginning");
            }},
           {}},
          {.preemptions = 2, .stale = 2}};
}

class TraceOrders : public testing::Test {
 protected:
  Ring ring_{1};
  std::vector<Named> scenarios_{timed_later(ring_), overwritten(ring_), two_writers(ring_)};
};

TEST_F(TraceOrders, EveryRunIsRight) { model::expect_right(scenarios_); }

TEST_F(TraceOrders, EachIsNeeded) {
  constexpr std::string_view kSources[] = {"collectives/trace/event_ring.hpp",
                                           "collectives/trace/event_ring.cpp"};
  model::expect_needed(scenarios_, kSources);
}

}  // namespace
}  // namespace gdrx::trace
