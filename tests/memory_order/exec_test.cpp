// SPDX-License-Identifier: Apache-2.0
// Rings, posts, shelves and published calls of collectives/exec, as their sources stand, on a
// machine that orders nothing by itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/reduce/copy_few.hpp"
#include "collectives/reduce/reducer.hpp"
#include "collectives/trace/span.hpp"
#include "gdrx/result.hpp"
#include "gdrx/traits.hpp"
#include "gdrx/types.hpp"
#include "tests/memory_order/orders.hpp"
#include "transport/memory/pages.hpp"
#include "transport/memory/process_memory.hpp"
// Behind all that has real atomics:
#include "tests/memory_order/atomics.hpp"
#define exec model_exec  // the library has the others
#include "collectives/exec/arena_layout.cpp"
#include "collectives/exec/arena_seat.cpp"
#include "collectives/exec/call_signature.cpp"
#include "collectives/exec/pair_ring.cpp"

namespace gdrx::exec {
namespace {

using model::Event;
using model::happen;
using model::knows;
using model::Named;
using model::require;

constexpr std::size_t kLong = 112;  // bytes of a slice that does not fit into its cell
constexpr std::size_t kTwo = 256;   // room for two of them

// A ring between two ranks.
struct RingWorld {
  alignas(128) std::array<std::byte, sizeof(PairRing) + kTwo> memory{};
  PairRing& ring = *reinterpret_cast<PairRing*>(memory.data());
  std::optional<RingSender> sender;
  std::optional<RingReceiver> receiver;
  std::array<Event, 3> given;
  std::array<Event, 3> taken;

  void begin() {
    memory.fill(std::byte{0});
    sender.emplace(ring, Rank{1}, kTwo);
    receiver.emplace(ring, kTwo);
    given = {};
    taken = {};
  }
  const SliceHead* await_head() {
    const SliceHead* head = nullptr;
    while ((head = receiver->head()) == nullptr) model::wait();
    return head;
  }
};

// The third slice is written over the first.
Named slices(RingWorld& world) {
  return {"slices in a ring",
          {[&] { world.begin(); },
           {[&] {
              const std::array<std::byte, kLong> bytes{};
              for (std::size_t i = 0; i < 3; ++i) {
                world.given[i] = happen();
                while (*world.sender->send({}, bytes) == Progress::pending) model::wait();
                require(i < 2 || knows(world.taken[i - 2]), "a slice is written over that is read");
              }
            },
            [&] {
              std::array<std::byte, kLong> bytes;
              for (std::size_t i = 0; i < 3; ++i) {
                world.await_head();
                require(knows(world.given[i]), "a slice is read that is not written");
                world.taken[i] = happen();
                world.receiver->take(bytes.data(), bytes.size());
              }
            }},
           {}}};
}

// A message is read where it is, or cannot be.
Named loan(RingWorld& world, bool refused) {
  return {refused ? "a loan that is refused" : "a loan",
          {[&world] { world.begin(); },
           {[&world, refused] {
              world.given[0] = happen();
              require(*world.sender->lend({}, nullptr) == Progress::done, "no room");
              RingSender::Loan end = RingSender::Loan::out;
              while ((end = *world.sender->loan()) == RingSender::Loan::out) model::wait();
              const auto wanted = refused ? RingSender::Loan::refused : RingSender::Loan::over;
              require(end == wanted, "it ended otherwise");
              require(knows(world.taken[0]), "it is over while it is read");
            },
            [&world, refused] {
              world.await_head();
              require(knows(world.given[0]), "it is read before it is lent");
              world.taken[0] = happen();
              if (refused) {
                world.receiver->refuse();
              } else {
                world.receiver->give_back();
              }
            }},
           {}}};
}

// The lent message is a word that its owner writes over once it is withdrawn.
Named withdrawn(RingWorld& world, std::uint64_t& message) {
  return {"a loan that is withdrawn",
          {[&] {
             world.begin();
             message = 0;
           },
           {[&] {
              require(*world.sender->lend({}, nullptr) == Progress::done, "no room");
              world.sender->withdraw();
              std::atomic_ref(message).store(1, std::memory_order_relaxed);
            },
            [&] {
              world.await_head();
              const auto read = std::atomic_ref(message).load(std::memory_order_relaxed);
              require(!world.receiver->still_lent() || read == 0, "another's bytes are believed");
            }},
           {}}};
}

// An arena of two ranks: their lines alone.
struct ArenaWorld {
  alignas(128) std::array<std::byte, 2 * sizeof(ArenaLine)> memory{};
  ArenaLayout layout{memory, 2, 4096, false};
  std::array<std::optional<ArenaSeat>, 2> seats;
  std::array<std::array<Event, 3>, 2> given;
  std::array<std::array<Event, 3>, 2> read;

  void begin() {
    memory.fill(std::byte{0});
    for (int rank = 0; rank < 2; ++rank)
      seats[static_cast<std::size_t>(rank)].emplace(layout, rank);
    given = {};
    read = {};
  }
  ArenaSeat& seat(std::size_t rank) { return *seats[rank]; }
};

CallSignature call(std::uint64_t sequence) {
  CallSignature signature;
  signature.sequence = sequence;
  signature.count = 7 * sequence + 1;
  return signature;
}

// All give to all; the third post is written over the first.
Named meetings(ArenaWorld& world) {
  const auto rank = [&](std::size_t self) {
    const std::size_t other = 1 - self;
    ArenaSeat& seat = world.seat(self);
    for (std::size_t i = 0; i < 3; ++i) {
      seat.begin(call(i), false);
      require(i < 2 || knows(world.read[other][i - 2]), "a post is written over that is read");
      world.given[self][i] = happen();
      seat.post(ArenaSeat::kAll);
      while (!seat.has_come(static_cast<int>(other))) model::wait();
      require(knows(world.given[other][i]), "a post is read that is not written");
      world.read[self][i] = happen();
      seat.all_have_come();
      seat.end(false);
    }
  };
  return {"meetings",
          {[&] { world.begin(); }, {[rank] { rank(0); }, [rank] { rank(1); }}, {}},
          {.preemptions = 2, .stale = 1}};
}

// Rank 0 gives by its two shelves; the third time over the first.
Named shelves(ArenaWorld& world) {
  return {"shelves",
          {[&] { world.begin(); },
           {[&] {
              ArenaSeat& seat = world.seat(0);
              for (std::size_t i = 0; i < 3; ++i) {
                seat.begin(call(i), true);
                while (!seat.may_post()) model::wait();
                while (!seat.may_fill()) model::wait();
                require(i < 2 || knows(world.read[1][i - 2]),
                        "a shelf is written over that is read");
                world.given[0][i] = happen();
                seat.filled(1);
                seat.post(1);
                seat.end(true);
              }
            },
            [&] {
              ArenaSeat& seat = world.seat(1);
              for (std::size_t i = 0; i < 3; ++i) {
                seat.begin(call(i), true);
                while (!seat.has_come(0)) model::wait();
                require(knows(world.given[0][i]), "a shelf is read that is not written");
                world.read[1][i] = happen();
                seat.end(true);
              }
            }},
           {}},
          {.preemptions = 2, .stale = 1}};
}

// Rank 0 gives by posts, of which the third stands where the first did. Rank 1 has no shelf to give
// back: it tells how far it has come as it begins.
Named posts(ArenaWorld& world) {
  constexpr std::array<std::uint64_t, 3> kCalls{0, ArenaSeat::kTellEvery, kPosts};
  return {"posts",
          {[&] { world.begin(); },
           {[&world, kCalls] {
              ArenaSeat& seat = world.seat(0);
              for (std::size_t i = 0; i < 3; ++i) {
                seat.begin(call(kCalls[i]), true);
                while (!seat.may_post()) model::wait();
                require(i < 2 || knows(world.read[1][0]), "a post is written over that is read");
                world.given[0][i] = happen();
                seat.post(1);
                seat.end(false);
              }
            },
            [&world, kCalls] {
              ArenaSeat& seat = world.seat(1);
              for (std::size_t i = 0; i < 3; ++i) {
                seat.begin(call(kCalls[i]), true);
                while (!seat.has_come(0)) model::wait();
                require(knows(world.given[0][i]), "a post is read that is not written");
                world.read[1][i] = happen();
                seat.end(false);
              }
            }},
           {}},
          {.preemptions = 2, .stale = 1}};
}

// A sequence lock: two calls in one place.
Named published(ArenaWorld& world) {
  return {"published calls",
          {[&] { world.begin(); },
           {[&] {
              world.layout.publish(0, call(3), 3);
              world.layout.publish(0, call(3 + kKnownCalls), 3 + kKnownCalls);
            },
            [&] {
              for (const std::uint64_t at : {std::uint64_t{3}, 3 + kKnownCalls}) {
                const auto found = world.layout.published(0, at);
                require(!found || *found == call(at), "parts of two calls");
              }
            }},
           {}},
          {.preemptions = 3, .stale = 3}};
}

class ExecOrders : public testing::Test {
 protected:
  RingWorld ring_;
  std::uint64_t message_ = 0;
  ArenaWorld arena_;
  std::vector<Named> scenarios_{
      slices(ring_),    loan(ring_, false), loan(ring_, true), withdrawn(ring_, message_),
      meetings(arena_), shelves(arena_),    posts(arena_),     published(arena_)};
};

TEST_F(ExecOrders, EveryRunIsRight) { model::expect_right(scenarios_); }

TEST_F(ExecOrders, EachIsNeeded) {
  constexpr std::string_view kSources[] = {
      "collectives/exec/pair_ring.hpp",    "collectives/exec/pair_ring.cpp",
      "collectives/exec/arena_seat.hpp",   "collectives/exec/arena_seat.cpp",
      "collectives/exec/arena_layout.hpp", "collectives/exec/arena_layout.cpp"};
  // Of withdraw(): it also orders stores around the cache.
  constexpr std::string_view kStronger[] = {"pair_ring.hpp fence"};
  model::expect_needed(scenarios_, kSources, kStronger);
}

}  // namespace
}  // namespace gdrx::exec
