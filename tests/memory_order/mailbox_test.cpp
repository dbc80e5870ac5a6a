// SPDX-License-Identifier: Apache-2.0
// The mailbox of shared memory, and credits in it, as their sources stand, on a machine that orders
// nothing by itself.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <span>

#include "collectives/exec/call_signature.hpp"
#include "gdrx/transport.hpp"
#include "tests/memory_order/orders.hpp"
// Behind all that has real atomics:
#include "tests/memory_order/atomics.hpp"
#define shm model_shm  // the library has the others
#define credit_in model_credit_in
#include "collectives/exec/receive_ring.hpp"
#include "transport/shm/mailbox.hpp"
#include "transport/shm/put.hpp"

namespace gdrx::shm {
namespace {

using model::Event;
using model::happen;
using model::knows;
using model::Named;
using model::require;

constexpr std::uint32_t kFew = 2;                 // ranks without a bell
constexpr std::uint32_t kMany = kWordsALine + 1;  // with one
constexpr std::uint32_t kSource = 1;

struct World {
  alignas(64) std::array<std::byte, 3 * kPage + kMany * kRing * sizeof(Word)> memory{};
  std::array<Event, 2> written;
  Event read;
  std::uint64_t heard = 0;
  std::uint64_t credit = 0;

  // Locations are of the model: what lies in memory stays zero.
  void begin() {
    written = {};
    read = {};
    heard = 0;
  }
};

Word word(std::uint16_t number) { return {number, 7, 100u + number}; }

// Two words; the reader takes what it finds at once, as a device does.
Named words(World& world) {
  return {"words of a mailbox",
          {[&] { world.begin(); },
           {[&] {
              const Mailbox box(world.memory, kFew);
              for (std::uint16_t i = 0; i < 2; ++i) {
                world.written[i] = happen();
                box.tell(kSource, word(static_cast<std::uint16_t>(i + 1)));
              }
              while (box.taken(kSource) != 2) model::wait();
              require(knows(world.read), "an entry is written over that is read");
            },
            [&] {
              const Mailbox box(world.memory, kFew);
              std::uint16_t taken = 0;
              while (taken != 2) {
                const std::uint16_t newest = box.newest(kSource).number;
                if (newest == taken) model::wait();
                for (; taken < newest; ++taken) {
                  const auto number = static_cast<std::uint16_t>(taken + 1);
                  require(box.entry(kSource, number) == word(number), "an entry of another word");
                  require(knows(world.written[taken]), "a word before what it tells of");
                }
                if (taken == 2) world.read = happen();
                box.take(kSource, taken);
              }
            }},
           {}},
          {.preemptions = 3, .stale = 3}};
}

// The reader looks at the bell once, and then at the word: it finds the word, or the bell is left.
Named bell(World& world) {
  return {"the bell of a mailbox",
          {[&] { world.begin(); },
           {[&] {
              const Mailbox box(world.memory, kMany);
              box.tell(kSource, word(1));
              box.tell(kSource, word(2));
            },
            [&] {
              const Mailbox box(world.memory, kMany);
              std::uint16_t newest = 0;
              while (newest != 2) {  // a word without a bell would never be looked at
                while (box.hear(kSource / kWordsALine) == 0) model::wait();
                newest = box.newest(kSource).number;
                require(newest != 0, "a bell before its word");
              }
            }},
           {}},
          {.preemptions = 3, .stale = 3}};
}

// A slot is written again once its reader says so.
Named credit(World& world) {
  return {"a credit",
          {[&] { world.begin(); },
           {[&] {
              while (exec::credit_in(world.credit) == 0) model::wait();
              require(knows(world.read), "a slot is written over that is read");
            },
            [&] {
              world.read = happen();
              const std::uint64_t consumed = 1;
              const WriteOp op{.header = std::as_bytes(std::span(&consumed, 1)), .payload = {}};
              put(op, reinterpret_cast<std::byte*>(&world.credit));
            }},
           {}},
          {.preemptions = 3, .stale = 3}};
}

class MailboxOrders : public testing::Test {
 protected:
  World world_;
  std::vector<Named> scenarios_{words(world_), bell(world_), credit(world_)};
};

TEST_F(MailboxOrders, EveryRunIsRight) { model::expect_right(scenarios_); }

TEST_F(MailboxOrders, EachIsNeeded) {
  constexpr std::string_view kSources[] = {"transport/shm/mailbox.hpp", "transport/shm/put.hpp",
                                           "collectives/exec/receive_ring.hpp"};
  model::expect_needed(scenarios_, kSources);
}

}  // namespace
}  // namespace gdrx::shm
