// SPDX-License-Identifier: Apache-2.0
// Blocks of kernels of two ranks: their slots, what they enter and leave, as the sources stand, on
// GPUs that order nothing by themselves.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "gdrx/types.hpp"
#include "tests/memory_order/orders.hpp"
#include "tests/memory_order/plain.hpp"
#define GDRX_DEVICE_HEADER "tests/memory_order/device.hpp"
#include "collectives/kernels/emptied.cuh"
#include "collectives/kernels/move.cuh"
#include "collectives/kernels/one_shot.cuh"
#include "collectives/kernels/pair.cuh"
#include "collectives/kernels/pair_bulk.cuh"
// Behind all that has real atomics:
#include "tests/memory_order/atomics.hpp"
#define has_given_up model_has_given_up  // the library has the other
#include "collectives/gpu/kernel_report.hpp"

namespace gdrx::gpu {
namespace {

using model::Named;
using model::require;

using Numbers = std::array<float, 4>;  // a pack

constexpr std::uint32_t kRingOfTwo = 4 * kLineSlots;  // messages of a pack, with their headers

// Rank 0 has two threads, of which the second tells rank 1 what rank 0 enters. Rank 1 needs but
// one, as it tells itself nothing.
class BlocksWorld {
 public:
  BlocksWorld() {
    for (auto& arena : arenas_) {
      void* const memory = mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      arena = static_cast<std::uint8_t*>(memory);
      for (const std::uint32_t slot : {0U, kSlots / 2}) empty(arena, slot);
      for (std::uint32_t i = 0; i < kRingOfTwo; ++i) empty(arena, kSlots + i);
    }
  }
  ~BlocksWorld() {
    for (auto* arena : arenas_) munmap(arena, kArenaBytes);
  }

  /// `alone`: rank 0 has one thread.
  void begin(bool alone = false) {
    for (auto* arena : arenas_) *reinterpret_cast<Control*>(arena) = {.owner = owner_of(1)};
    barrier_ = {};
    report_ = {};
    spots = {Spot{{0}, {2}, &barrier_}, Spot{{1}, {2}, &barrier_}, Spot{}};
    if (alone) spots = {};
    plain.begin();
  }

  Call call(int rank) const {
    Call call;
    call.bytes = sizeof(Numbers);
    for (std::size_t i = 0; i < 2; ++i) call.arena[i] = arenas_[i];
    call.report = const_cast<Report*>(&report_);
    call.rank = rank;
    call.ranks = 2;
    call.owner = owner_of(1);
    call.type = static_cast<std::int32_t>(DataType::float32);
    return call;
  }

  std::uint8_t* arena(std::size_t rank) const { return arenas_[rank]; }
  Report& report() { return report_; }
  Room* room() const { return reinterpret_cast<Control*>(arenas_[1])->room; }

  model::PlainMemory plain;
  std::array<std::uint64_t, 2> in{};
  std::array<std::uint64_t, 2> out{};

 private:
  static void empty(std::uint8_t* arena, std::uint32_t slot) {
    *slot_of(arena, slot) = {kSentinelLow, kSentinelHigh};
  }

  std::array<std::uint8_t*, 2> arenas_{};
  Report report_{};
  Barrier barrier_;
};

// Between two kernels of a stream all threads of the first have ended, and what they did is there
// for those of the second. For the whole system as well: slots count on it, whose clearing the next
// kernel tells a peer of by what it sends. Buffers do not, in the scenario of those.
void next_kernel() {
  __syncthreads();
  fence_system();
}

Numbers numbers(float first) { return {first, first + 1, first + 2, first + 3}; }

void one_shots(const BlocksWorld& world, int rank, int calls) {
  for (int i = 0; i < calls; ++i) {
    alignas(Pack) const Numbers input = numbers(static_cast<float>(i + 10 * rank));
    alignas(Pack) Numbers output{};
    Call call = world.call(rank);
    call.input = &input;
    call.output = &output;
    one_shot<Float, 1, Share::pack>(call);
    if (threadIdx.x == 0) {
      const Numbers wanted{10.F + 2 * i, 12.F + 2 * i, 14.F + 2 * i, 16.F + 2 * i};
      require(output == wanted, "another sum");
    }
    next_kernel();
  }
}

Named one_shot_calls(BlocksWorld& world) {
  return {"one-shot by a GPU",
          {[&] { world.begin(); },
           {[&] { one_shots(world, 0, 3); }, [&] { one_shots(world, 0, 3); },
            [&] { one_shots(world, 1, 3); }},
           {}},
          {.preemptions = 1, .stale = 1}};
}

// What looks like an empty slot, and what says so, through one slot. What comes back tells that it
// is empty again: tiles of one kernel.
constexpr std::array<Pack, 2> kRare{{{kSentinelLow, kSentinelHigh}, {kSentinelLow, kEscapeHigh}}};

Pack taken(std::uint8_t* arena, std::uint32_t slot) {
  Pack pack{};
  while (is_sentinel(pack = load_shared(slot_of(arena, slot)))) model::wait();
  return take(arena, slot, pack);
}

Named rare_packs(BlocksWorld& world) {
  return {"packs that look like an empty slot",
          {[&] { world.begin(true); },
           {[&] {
              for (const Pack& pack : kRare) {
                send(world.arena(1), 0, pack);
                taken(world.arena(0), 0);
                block_fence();
              }
            },
            [&] {
              for (const Pack& pack : kRare) {
                const Pack got = taken(world.arena(1), 0);
                require(got.low == pack.low && got.high == pack.high, "another pack");
                block_fence();
                send(world.arena(0), 0, {1, 1});
              }
            }},
           {}},
          {.preemptions = 2, .stale = 2}};
}

// Kernels that read and write the peer's buffers, between their barriers.
void directs(BlocksWorld& world, int rank) {
  const auto self = static_cast<std::size_t>(rank);
  const std::size_t peer = 1 - self;
  const bool moves = threadIdx.x == 0;
  for (int i = 0; i < 2; ++i) {
    if (moves) world.plain.write(&world.in[self], sizeof world.in[self]);
    __syncthreads();
    const Call call = world.call(rank);
    WaitGuard guard(call);
    const Entry entry = entry_barrier(call, true, guard);
    advance_epoch(call, entry, false);
    if (moves) world.plain.read(&world.in[peer], sizeof world.in[peer]);
    if (moves) world.plain.write(&world.out[peer], sizeof world.out[peer]);
    exit_barrier(call, entry, guard);
    __syncthreads();
    if (moves) world.plain.read(&world.out[self], sizeof world.out[self]);
  }
}

Named barriers(BlocksWorld& world) {
  return {"barriers of kernels",
          {[&] { world.begin(); },
           {[&] { directs(world, 0); }, [&] { directs(world, 0); }, [&] { directs(world, 1); }},
           {}},
          {.preemptions = 1, .stale = 1}};
}

// The kernel says why, and then that it has.
Named given_up(BlocksWorld& world) {
  return {"a kernel that gives up",
          {[&] { world.begin(true); },
           {[&] {
              world.plain.write(&world.report().peer, sizeof world.report().peer);
              const Call call = world.call(0);
              WaitGuard(call).fail(1, {}, {});
            },
            [&] {
              while (!has_given_up(world.report())) model::wait();
              world.plain.read(&world.report().peer, sizeof world.report().peer);
            }},
           {}},
          {.preemptions = 3, .stale = 3}};
}

// Three tiles through one slot. A thread empties it, another tells the peer, which is the third.
Named tiles(BlocksWorld& world, std::uint32_t& by_warp) {
  constexpr std::uint32_t kTiles = 3;
  return {"tiles through one slot",
          {[&] {
             world.begin(true);
             spots[1].thread.x = 32;
             by_warp = 0;
           },
           {[&] {
              for (std::uint32_t tile = 0; tile < kTiles; ++tile) {
                require(taken(world.arena(0), 0).low == tile, "another tile");
                Emptied(&by_warp, 1).set(tile + 1);
              }
            },
            [&] { Emptied(&by_warp, 1).tell(world.room(), 7, kTiles); },
            [&] {
              for (std::uint32_t tile = 0; tile < kTiles; ++tile) {
                while (emptied_by_peer(world.room(), 7) < tile) model::wait();
                send(world.arena(0), 0, {tile, 0});
              }
            }},
           {}},
          {.preemptions = 2, .stale = 1}};
}

// The same of a move, where the last warp also hears that the peer has entered.
Named moves(BlocksWorld& world, std::array<std::uint32_t, 2>& by_warp, MoveCall& call) {
  return {"tiles of a move",
          {[&] {
             world.begin(true);
             spots[0].thread.x = 32;      // the second warp, which empties the slot
             spots[1].thread.x = 64 + 1;  // of the last one, the thread for rank 1
             by_warp = {};
             static_cast<Call&>(call) = world.call(0);
             call.tiles = 3;
             call.receives[1] = {.bytes = 3 * sizeof(Pack), .width = 1, .channels = 1, .chunks = 3};
           },
           {[&] {
              for (std::uint32_t tile = 0; tile < 3; ++tile) {
                require(taken(world.arena(0), 0).low == tile, "another tile");
                Emptied(by_warp.data(), 2).set(tile + 1);
              }
            },
            [&] {
              WaitGuard guard(call);
              const Entry entry{};
              Attendant(call, entry).attend(Emptied(by_warp.data(), 2), guard);
            },
            [&] {
              const Pack entered = entered_of(call, 1, call.receives[1].bytes);
              store_shared(&control_of(call, 0)->entered[0][1], entered);
              for (std::uint32_t tile = 0; tile < 3; ++tile) {
                while (emptied_by_peer(room_of(call, 1, 0), 0) < tile) model::wait();
                send(world.arena(0), 0, {tile, 0});
              }
            }},
           {}},
          {.preemptions = 1, .stale = 1}};
}

// Three tiles of a message in bulk, by a ring of two: their bytes are no packs that say themselves
// that they have come.
PairCall bulk_call(const BlocksWorld& world, int rank) {
  PairCall call;
  static_cast<Call&>(call) = world.call(rank);
  call.channels.tiles = 2;
  return call;
}

void move_tiles(BlocksWorld& world, const PairCall& call, bool sends) {
  const int peer = 1 - call.rank;
  TileRing ring;
  ring.begin(call, peer, sends, 0);
  for (int tile = 0; tile < 3; ++tile) {
    while (ring.ready(call, peer, sends, 0, 1) == 0) model::wait();
    const Pack* const at = ring.next(call, 0, 1, 0, 0);
    if (sends) {
      world.plain.write(at, sizeof(Pack));
    } else {
      world.plain.read(at, sizeof(Pack));
    }
    ring.go_on(call, 1);
    ring.tell(call, peer, sends, 0);
  }
}

Named bulk(BlocksWorld& world, const std::array<PairCall, 2>& calls) {
  return {
      "tiles in bulk",
      {[&] { world.begin(true); },
       {[&] { move_tiles(world, calls[0], false); }, [&] { move_tiles(world, calls[1], true); }},
       {}},
      {.preemptions = 2, .stale = 2}};
}

// By a ring that is shorter than those of a GPU.
constexpr std::uint32_t kMessagesSent = 4;

PairCall pair_call(const BlocksWorld& world, int rank, std::array<Pack, kMessagesSent>& buffers) {
  PairCall call;
  static_cast<Call&>(call) = world.call(rank);
  call.channels.ring = kRingOfTwo;
  call.lines[0] = {.peer = static_cast<std::uint32_t>(1 - rank),
                   .sends = rank == 1 ? 1U : 0U,
                   .first = 0,
                   .end = kMessagesSent,
                   .end_task = 1};
  for (std::uint32_t i = 0; i < kMessagesSent; ++i) {
    buffers[i] = {rank == 1 ? i + 1 : 0, 0};
    call.messages[i] = {reinterpret_cast<std::uint8_t*>(&buffers[i]), sizeof(Pack), 5, 32};
  }
  return call;
}

struct PairWorld {
  explicit PairWorld(BlocksWorld& of) : blocks(of) {}
  void begin() {
    blocks.begin(true);
    for (int rank = 0; rank < 2; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      calls[at] = pair_call(blocks, rank, buffers[at]);
    }
  }
  void run(std::size_t rank) {
    WaitGuard guard(calls[rank]);
    Channel<InBulk::none>::Memory memory;
    Channel<InBulk::none> channel;
    channel.begin(calls[rank], 0);
    while (!channel.done()) {
      if (!channel.step(calls[rank], memory, guard)) model::wait();
      require(!guard.expired(), "another message");
    }
  }
  void end() const {
    for (std::size_t i = 0; i < kMessagesSent; ++i) {
      require(buffers[0][i].low == buffers[1][i].low, "another message");
    }
  }
  BlocksWorld& blocks;
  std::array<std::array<Pack, kMessagesSent>, 2> buffers;
  std::array<PairCall, 2> calls;
};

Named messages(PairWorld& world) {
  return {"messages of a pair",
          {[&] { world.begin(); },
           {[&] { world.run(0); }, [&] { world.run(1); }},
           [&] { world.end(); }},
          {.preemptions = 1, .stale = 1}};
}

class GpuBlockOrders : public testing::Test {
 protected:
  BlocksWorld world_;
  std::uint32_t by_warp_ = 0;
  std::array<std::uint32_t, 2> by_warps_{};
  MoveCall move_;
  PairWorld pair_{world_};
  std::array<PairCall, 2> bulk_{bulk_call(world_, 0), bulk_call(world_, 1)};
  std::vector<Named> scenarios_{given_up(world_),   moves(world_, by_warps_, move_),
                                messages(pair_),    bulk(world_, bulk_),
                                rare_packs(world_), tiles(world_, by_warp_),
                                barriers(world_),   one_shot_calls(world_)};
};

TEST_F(GpuBlockOrders, EveryRunIsRight) { model::expect_right(scenarios_); }

TEST_F(GpuBlockOrders, EachIsNeeded) {
  constexpr std::string_view kSources[] = {
      "tests/memory_order/gpu_blocks_test.cpp", "collectives/kernels/pack.cuh",
      "collectives/kernels/wait.cuh",           "collectives/kernels/emptied.cuh",
      "collectives/kernels/exchange.cuh",       "collectives/kernels/pair_bulk.cuh",
      "collectives/kernels/pair.cuh",           "collectives/kernels/move.cuh",
      "collectives/gpu/kernel_report.hpp"};
  // Another thread of the warp reads than the one whose fence follows, where there are 32.
  constexpr std::string_view kStronger[] = {"emptied.cuh read_in_block"};
  model::expect_needed(scenarios_, kSources, kStronger);
}

}  // namespace
}  // namespace gdrx::gpu
