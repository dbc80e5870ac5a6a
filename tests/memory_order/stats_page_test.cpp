// SPDX-License-Identifier: Apache-2.0
// A place of the plugin's counters, as its source stands, on a machine that orders nothing by
// itself: its connections one after another, and another process that copies it meanwhile.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/memory_order/orders.hpp"
// Behind all that has real atomics:
#include "tests/memory_order/atomics.hpp"
#define stats model_stats  // the library has the others
#include "plugin/stats/page.hpp"

namespace gdrx::stats {
namespace {

using model::Named;
using model::require;

// What a page has, for one connection of two words.
struct Slot {
  Place place;
  Counter one;
  Counter other;
};
struct Slots {
  std::array<Slot, 1> connection;
};

template <class Word, class Object>
Word& word_of(Object& object) {
  return *reinterpret_cast<Word*>(&object);
}
// As the kernel copies.
template <class Word, class Object>
void copy(Object& to, Object& from) {
  word_of<Word>(to) = std::atomic_ref<Word>(word_of<Word>(from)).load(std::memory_order_relaxed);
}

struct PageWorld {
  Slot shared;
  Slots before, page, after;

  void begin() {
    for (Slots* copy : {&before, &page, &after}) {
      std::memset(static_cast<void*>(copy), 0, sizeof *copy);
    }
  }
  void connect(std::uint64_t number) {
    shared.place.begin();
    shared.one.set(number);
    shared.other.set(number);
    shared.place.began(Way::send);
  }
};

Named copied(PageWorld& world) {
  return {"a page that is copied",
          {[&] { world.begin(); },
           {[&] {
              for (std::uint64_t number = 1; number <= 2; ++number) {
                world.connect(number);
                world.shared.place.end();
              }
            },
            [&] {
              read_steadily(world.page, world.before, world.after, [&](Slots& to) {
                Slot& slot = to.connection[0];
                copy<std::uint32_t>(slot.place, world.shared.place);
                copy<std::uint64_t>(slot.one, world.shared.one);
                copy<std::uint64_t>(slot.other, world.shared.other);
                return true;
              });
              const Slot& got = world.page.connection[0];
              require(got.place.way() == Way::none ||
                          (got.one.get() != 0 && got.one.get() == got.other.get()),
                      "parts of two connections");
            }},
           {}},
          {.preemptions = 2, .stale = 3}};
}

Named taken_over(PageWorld& world) {
  return {"a place that is taken over",
          {[&] { world.begin(); },
           {[&] {
              world.connect(1);
              world.shared.one.add(1);
              world.shared.place.end();
            },
            [&] {
              while (world.shared.place == world.page.connection[0].place) model::wait();
              while (!world.shared.place.is_free()) model::wait();
              world.connect(0);
              require(world.shared.one.get() == 0, "it counts for another");
            }},
           {}},
          {.preemptions = 2, .stale = 2}};
}

class StatsOrders : public testing::Test {
 protected:
  PageWorld world_;
  std::array<Named, 2> scenarios_{taken_over(world_), copied(world_)};
};

TEST_F(StatsOrders, EveryRunIsRight) { model::expect_right(scenarios_); }

TEST_F(StatsOrders, EachIsNeeded) {
  constexpr std::string_view kSources[] = {"plugin/stats/place.hpp", "plugin/stats/page.hpp"};
  model::expect_needed(scenarios_, kSources);
}

}  // namespace
}  // namespace gdrx::stats
