// SPDX-License-Identifier: Apache-2.0
// The stages of a longer call in the arena, and the gate of those that write results into other
// processes, as their sources stand, on a machine that orders nothing by itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "collectives/exec/execution.hpp"
#include "collectives/exec/partition.hpp"
#include "collectives/reduce/copy_few.hpp"
#include "collectives/reduce/reducer.hpp"
#include "collectives/trace/span.hpp"
#include "gdrx/result.hpp"
#include "gdrx/traits.hpp"
#include "gdrx/types.hpp"
#include "tests/memory_order/orders.hpp"
#include "tests/memory_order/plain.hpp"
#include "transport/memory/pages.hpp"
#include "transport/memory/process_memory.hpp"
// Behind all that has real atomics:
#include "tests/memory_order/atomics.hpp"

namespace gdrx::model_stages {

// What the sources below call of others, in place of that.
using exec::Counters;
using exec::Execution;
using exec::Part;
using exec::Partition;
using exec::Range;
using exec::Step;

model::PlainMemory plain;
bool refuses_rank_1 = false;  // the kernel, to write its output

namespace reduce {
using gdrx::reduce::UserOperator;
void copy(void* to, const void* from, std::size_t bytes, bool = false) {
  plain.read(from, bytes);
  plain.write(to, bytes);
}
void reduce(void* to, std::span<const void* const> sources, std::size_t count, DataType type,
            ReduceOp, int) {
  for (const void* source : sources) plain.read(source, count * size_of(type));
  plain.write(to, count * size_of(type));
}
void reduce_by(const UserOperator&, void* to, std::span<const void* const> sources,
               std::size_t count, DataType type) {
  reduce(to, sources, count, type, {}, 0);
}
}  // namespace reduce

// The kernel looks at the gate and closes it under a lock: no more than acquire and release.
class WriteGate {
 public:
  void begin() { closed_ = {}; }
  void close() noexcept { closed_.store(1, std::memory_order_release); }
  bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire) != 0; }
  std::uint64_t address() const noexcept { return reinterpret_cast<std::uint64_t>(this); }

 private:
  std::atomic<std::uint64_t> closed_;
};

Written write_process(std::int32_t pid, std::uint64_t gate, std::uint64_t address,
                      std::span<const std::byte> from) {
  if (std::bit_cast<const WriteGate*>(gate)->is_closed()) return Written::refused;
  // Between its look and its write the other may have a turn: that of any atomic.
  std::bit_cast<const WriteGate*>(gate)->is_closed();
  if (refuses_rank_1 && pid == 1) return Written::not_so;
  plain.read(from.data(), from.size());
  plain.write(std::bit_cast<const void*>(address), from.size());
  return Written::all;
}
std::int32_t own_thread() { return 1; }
bool is_running(std::int32_t, std::int32_t) { return true; }

}  // namespace gdrx::model_stages

namespace std::model_this_thread {
template <class Time>
void sleep_for(const Time&) {
  gdrx::model::wait();
}
}  // namespace std::model_this_thread

#define exec model_stages  // the library has the others
#define this_thread model_this_thread
#include "collectives/exec/arena_execution.cpp"
#include "collectives/exec/arena_layout.cpp"
#include "collectives/exec/arena_seat.cpp"
#include "collectives/exec/call_signature.cpp"

namespace gdrx::exec {
namespace {

using model::Named;
using model::require;

constexpr std::size_t kElement = 8;
constexpr std::size_t kBlock = 2 * kElement;  // an element a rank
constexpr std::size_t kMostElements = 6;

enum class Kind : std::uint8_t { one_shot, two_shot, written };

// An arena of two ranks without rings, and their buffers.
struct StagesWorld {
  alignas(128) std::array<std::byte, 2 * sizeof(ArenaLine) + 8192> memory{};
  ArenaLayout layout{memory, 2, kBlock, false};
  std::array<std::optional<ArenaSeat>, 2> seats;
  std::array<WriteGate, 2> gates;
  std::array<ProcessTicket, 2> processes{{{.pid = 0}, {.pid = 1}}};
  std::array<std::array<std::uint64_t, kMostElements>, 2> in{};
  std::array<std::array<std::uint64_t, kMostElements>, 2> out{};

  void begin(bool refuses = false) {
    memory.fill(std::byte{0});
    for (std::size_t rank = 0; rank < 2; ++rank) {
      seats[rank].emplace(layout, static_cast<int>(rank));
      gates[rank].begin();
    }
    plain.begin();
    refuses_rank_1 = refuses;
  }

  ArenaCall call(std::size_t rank, Kind kind, std::uint64_t sequence, std::uint64_t base,
                 std::size_t elements) {
    CallSignature signature;
    signature.collective = Collective::all_reduce;
    signature.type = DataType::int64;
    signature.algorithm =
        kind == Kind::one_shot ? plan::Algorithm::one_shot : plan::Algorithm::two_shot;
    signature.sequence = sequence;
    signature.count = elements;
    seats[rank]->begin(signature, false);
    ArenaCall made{.signature = signature, .base = base};
    made.input = reinterpret_cast<const std::byte*>(in[rank].data());
    made.output = reinterpret_cast<std::byte*>(out[rank].data());
    if (kind == Kind::written) {
      made.processes = processes;
      made.gate = &gates[rank];
    }
    return made;
  }

  // Takes part in a call to its end; the stage at which the next one begins. Program writes what it
  // gives before, and reads what it gets behind.
  std::uint64_t run(std::size_t rank, Kind kind, std::uint64_t sequence, std::uint64_t base,
                    std::size_t elements) {
    plain.write(in[rank].data(), elements * kElement);
    ArenaExecution execution(*seats[rank], call(rank, kind, sequence, base, elements));
    for (Step step = Step::idle; step != Step::done;) {
      step = *execution.step();
      if (step == Step::idle) model::wait();
    }
    plain.read(out[rank].data(), elements * kElement);
    return execution.end_stage(base);
  }
};

// Two calls; the first has as many blocks as there are elements for, the second one. Whoever waits
// has its turn without being counted, so that one turn more is enough for what a stage orders.
Named calls(StagesWorld& world, const char* name, Kind kind, std::size_t elements,
            bool refuses = false, int preemptions = 1) {
  const auto rank = [&world, kind, elements](std::size_t self) {
    const std::uint64_t next = world.run(self, kind, 0, 0, elements);
    world.run(self, kind, 1, next, 2);
  };
  return {
      name,
      {[&world, refuses] { world.begin(refuses); }, {[rank] { rank(0); }, [rank] { rank(1); }}, {}},
      {.preemptions = preemptions, .stale = 1}};
}

// Rank 1 gives the call up after its first step, and its output is somebody else's then.
Named given_up(StagesWorld& world) {
  return {"a call that is given up",
          {[&] { world.begin(); },
           {[&] {
              ArenaExecution execution(*world.seats[0], world.call(0, Kind::written, 0, 0, 2));
              for (int steps = 0; steps < 2;) {
                const auto step = execution.step();
                if (!step) return;  // the gate is closed
                steps += *step == Step::advanced ? 1 : 0;
                if (*step == Step::idle) model::wait();
              }
            },
            [&] {
              {
                ArenaExecution execution(*world.seats[1], world.call(1, Kind::written, 0, 0, 2));
                require(*execution.step() == Step::advanced, "it does not begin");
              }
              plain.write(world.out[1].data(), 2 * kElement);
            }},
           {}},
          {.preemptions = 3, .stale = 2}};
}

class StageOrders : public testing::Test {
 protected:
  StagesWorld world_;
  std::vector<Named> scenarios_{
      calls(world_, "stages, one-shot", Kind::one_shot, 6, false, 2),
      calls(world_, "stages, two-shot", Kind::two_shot, 6),
      calls(world_, "stages, written", Kind::written, 4),
      calls(world_, "stages, one of which is not written", Kind::written, 4, true),
      given_up(world_)};
};

TEST_F(StageOrders, EveryRunIsRight) { model::expect_right(scenarios_); }

TEST_F(StageOrders, EachIsNeeded) {
  constexpr std::string_view kSources[] = {"collectives/exec/arena_execution.cpp"};
  model::expect_needed(scenarios_, kSources);
}

}  // namespace
}  // namespace gdrx::exec
