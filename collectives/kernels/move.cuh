// SPDX-License-Identifier: Apache-2.0
// Bytes from every rank to every other, as many for each pair as the call says: one kernel for all
// collectives that add nothing, of all types. What a rank does with what comes is a parameter: see
// add.cuh.
//
// Why a slot is never written too early. Within a call, a channel's sets are used in turn, and the
// receiver's block tells the sender's how many tiles it has emptied: a set is written again once
// its last tile is among them. Between calls: no rank ends a move before every rank has entered it,
// which the first block's last warp sees by what they told, while the data is on its way. So a rank
// that is in this call knows that all are in the one before at least, and have ended the one before
// that, which had the same half of the slots. It is what ranks that send to each other know anyway.
// Why none stays full: every rank compares how many bytes each peer sends it with what it expects;
// where they are the same all that is sent is received, and emptied, before the kernel ends.
#pragma once

#include "collectives/kernels/emptied.cuh"
#include "collectives/kernels/exchange.cuh"
#include "collectives/kernels/moves.hpp"

namespace gdrx::gpu {

/// In a sender's arena: what the receiver's block of this number has emptied.
__device__ __forceinline__ Room* room_of(const Call& call, int sender, int receiver) {
  return reinterpret_cast<Room*>(call.arena[sender] + kRoomsAt) + block_of_call() * kMaxRanks +
         receiver;
}

/// This block's chunk of a run in a tile.
struct Chunk {
  std::uint64_t first;  // of its packs
  std::uint32_t packs;  // 0: it has none

  __device__ __forceinline__ Chunk(const Move& run, std::uint32_t tile) : first(0), packs(0) {
    const std::uint32_t chunk = tile * run.channels + block_of_call();
    if (block_of_call() >= run.channels || chunk >= run.chunks) return;
    first = std::uint64_t{chunk} * run.width;
    const std::uint64_t rest = packs_of(run.bytes) - first;
    packs = rest < run.width ? static_cast<std::uint32_t>(rest) : run.width;
  }
};

/// The last warp of a block: it sees that every peer has entered this call and sends what this rank
/// expects (the first block's does), and tells who sends here of the sets that are empty again.
class Attendant {
 public:
  __device__ __forceinline__ Attendant(const MoveCall& call, const Entry& entry)
      : call_(call), entry_(entry), peer_(static_cast<int>(threadIdx.x % 32)) {
    if (peer_ >= call.ranks || peer_ == call.rank) return;
    heard_ = block_of_call() != 0;
    const std::uint32_t tiles = call.receives[peer_].tiles();
    awaits_ = tiles > call.channels.sets ? tiles - call.channels.sets : 0;
  }

  /// Until every peer was heard and told. A thread that gave up waits for nothing any more.
  __device__ __forceinline__ void attend(const Emptied& emptied, WaitGuard& guard) {
    std::uint32_t told = 0;
    while (__reduce_min_sync(~0U, heard_ && told >= awaits_ ? 1U : 0U) == 0) {
      const std::uint32_t now = emptied.least(call_.tiles);
      __syncwarp();  // what other lanes have seen emptied is, before this one's fence
      if (now != told && told < awaits_) {
        fence_system();
        store_shared(room_of(call_, peer_, call_.rank), std::uint64_t{entry_.calls} << 32 | now);
      }
      told = now;
      if (!heard_) heard_ = hear(guard);
    }
  }

 private:
  /// False: it has not come yet.
  __device__ __forceinline__ bool hear(WaitGuard& guard) const {
    const Pack expected = entered_of(call_, entry_.calls + 1, call_.receives[peer_].bytes);
    const Control* control = control_of(call_, call_.rank);
    const Pack theirs = load_shared(&control->entered[entry_.calls % 2][peer_]);
    if (entered_before(theirs.low, expected.low)) {
      return !guard.keep_waiting(peer_, Stage::entering, 0);
    }
    // Who has given up goes on to later calls.
    if (!of_one_number(theirs.low, expected.low)) return true;
    if (theirs.low != expected.low || theirs.high != expected.high) {
      guard.fail(peer_, expected, theirs);
    }
    return true;
  }

  const MoveCall& call_;
  const Entry& entry_;
  int peer_;
  bool heard_ = true;
  std::uint32_t awaits_ = 0;  // tiles of which the peer has to be told
};

/// One block's share of a call, its last warp apart: tile after tile, the next one sent before one
/// is awaited. So whoever is behind all others never waits: its peers have sent what it awaits, and
/// emptied what it writes.
template <int kUnroll, int kPeers>
class Mover {
 public:
  using Packs = Batch<kUnroll, kPeers>;
  static constexpr int kPacks = kUnroll;

  __device__ __forceinline__ Mover(const MoveCall& call, const Entry& entry, WaitGuard& guard)
      : call_(call), entry_(entry), guard_(guard), room_(call.channels.sets) {}

  __device__ __forceinline__ void send_tile(std::uint32_t tile) {
    if (tile >= room_) await_room(tile);
    for (int step = 1; step < call_.ranks; ++step) {
      const int to = rank_above(call_, step);
      const Chunk chunk(call_.sends[to], tile);
      if (chunk.packs == 0) continue;
      const UserBuffer from(static_cast<const std::uint8_t*>(call_.input) + call_.sends[to].at,
                            call_.sends[to].bytes);
      const std::uint32_t slot = first_slot(sending_) + lane_of(to, call_.rank) * kWidth;
      Pack packs[kUnroll];
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (at(i) < chunk.packs) packs[i] = from.load(chunk.first + at(i));
      }
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (at(i) < chunk.packs && !guard_.expired()) {
          send(call_.arena[to], slot + at(i), packs[i]);
        }
      }
    }
    if (++sending_ == call_.channels.sets) sending_ = 0;
  }

  /// `keeper`: prepare() is called while the tile is on its way, store() puts it where it belongs.
  template <class Keeper>
  __device__ __forceinline__ void receive_tile(std::uint32_t tile, Keeper& keeper) {
    Packs batch;
    const std::uint32_t wanted = Packs::mask(
        call_, [&](int from, int i) { return at(i) < Chunk(call_.receives[from], tile).packs; });
    const Places places{first_slot(coming_) + threadIdx.x, kWidth, kMovers};
    if (++coming_ == call_.channels.sets) coming_ = 0;
    keeper.prepare(wanted, tile);
    batch.receive(call_, places, wanted, guard_, Stage::receiving);
    keeper.store(batch, wanted, tile);
    batch.clear(call_, places, wanted);
  }

  /// Of a chunk, this thread's i-th pack.
  static __device__ __forceinline__ std::uint32_t at(int i) {
    return static_cast<std::uint32_t>(i) * kMovers + threadIdx.x;
  }

 private:
  static constexpr std::uint32_t kWidth = kUnroll * kMovers;

  /// Of this block's set, lane after lane.
  __device__ __forceinline__ std::uint32_t first_slot(std::uint32_t set) const {
    const auto lanes = static_cast<std::uint32_t>(call_.ranks - 1);
    return entry_.half + (set * call_.channels.count + block_of_call()) * lanes * kWidth;
  }

  /// A tile that one peer has no part in has none in any later one either.
  __device__ __forceinline__ void await_room(std::uint32_t tile) {
    room_ = ~0U;
    for (int step = 1; step < call_.ranks; ++step) {
      const int to = rank_above(call_, step);
      if (Chunk(call_.sends[to], tile).packs == 0) continue;
      const Room* const word = room_of(call_, call_.rank, to);
      std::uint32_t room = 0;
      do {
        room = emptied_by_peer(word, entry_.calls) + call_.channels.sets;
      } while (tile >= room && guard_.keep_waiting(to, Stage::sending, block_of_call()));
      guard_.arrived();
      room_ = room < room_ ? room : room_;
    }
  }

  const MoveCall& call_;
  const Entry& entry_;
  WaitGuard& guard_;
  std::uint32_t room_;         // tiles that every peer has room for
  std::uint32_t sending_ = 0;  // the set of the tile that is sent next, and of the one that comes
  std::uint32_t coming_ = 0;
};

/// What a rank has for itself, cut as what it sends, so that a tile of it is copied while the
/// peers' are on their way.
template <class Moving>
class Own {
 public:
  __device__ __forceinline__ Own(const MoveCall& call, bool copies)
      : run_(call.sends[call.rank]),
        from_(static_cast<const std::uint8_t*>(call.input) + run_.at, run_.bytes),
        to_(static_cast<std::uint8_t*>(call.output) + call.receives[call.rank].at, run_.bytes) {
    if (copies && from_.place(0) != to_.place(0)) tiles_ = run_.tiles();
  }
  __device__ __forceinline__ std::uint32_t tiles() const { return tiles_; }
  __device__ __forceinline__ void copy_tile(std::uint32_t tile) const {
    if (tile >= tiles_) return;
    const Chunk chunk(run_, tile);
    Pack packs[Moving::kPacks];
#pragma unroll
    for (int i = 0; i < Moving::kPacks; ++i) {
      if (Moving::at(i) < chunk.packs) packs[i] = from_.load(chunk.first + Moving::at(i));
    }
#pragma unroll
    for (int i = 0; i < Moving::kPacks; ++i) {
      if (Moving::at(i) < chunk.packs) to_.store(chunk.first + Moving::at(i), packs[i]);
    }
  }

 private:
  const Move& run_;
  UserBuffer from_;
  UserBuffer to_;
  std::uint32_t tiles_ = 0;
};

/// What a kernel of moves does, in blocks of kMovers threads and a warp: at least as many as the
/// longest of this rank's runs in slots has channels. `keeper`: see Mover; copies() is whether a
/// rank's own run goes where it belongs as it is.
template <int kUnroll, int kPeers, class Keeper>
__device__ __forceinline__ void run_moves(const MoveCall& call, Keeper keeper) {
  begin<false>();
  WaitGuard guard(call);
  const Announcement announcement(call);
  constexpr int kWarps = kMovers / 32;
  std::uint32_t* const by_warp = block_memory<std::uint32_t, kWarps>();
  if (threadIdx.x < kWarps) by_warp[threadIdx.x] = 0;
  const bool moves = threadIdx.x < kMovers;
  const std::uint64_t said =
      threadIdx.x < static_cast<unsigned>(call.ranks) ? call.sends[threadIdx.x].bytes : 0;
  const Entry entry =
      entry_barrier(call, control_of(call, call.rank), false, guard, announcement, said);
  Mover<kUnroll, kPeers> mover(call, entry, guard);
  if (moves) mover.send_tile(0);
  advance_epoch(call, entry, false);
  const Emptied emptied(by_warp, kWarps);
  if (!moves) {
    Attendant(call, entry).attend(emptied, guard);
    return;
  }
  const Own<Mover<kUnroll, kPeers>> own(call, keeper.copies());
  for (std::uint32_t tile = 0; tile < call.tiles; ++tile) {
    if (tile + 1 < call.tiles) mover.send_tile(tile + 1);
    own.copy_tile(tile);
    mover.receive_tile(tile, keeper);
    emptied.set(tile + 1);
  }
  for (std::uint32_t tile = call.tiles; tile < own.tiles(); ++tile) own.copy_tile(tile);
}

/// What comes goes where the call says.
template <int kUnroll, int kPeers>
struct AsItComes {
  using Moving = Mover<kUnroll, kPeers>;
  using Packs = typename Moving::Packs;
  const MoveCall& call;

  __device__ __forceinline__ bool copies() const { return true; }
  __device__ __forceinline__ void prepare(std::uint32_t, std::uint32_t) const {}
  __device__ __forceinline__ void store(const Packs& batch, std::uint32_t wanted,
                                        std::uint32_t tile) const {
    Packs::each(wanted, [&](int i, int peer) {
      const Move& run = call.receives[Packs::rank_of(call, peer)];
      const UserBuffer to(static_cast<std::uint8_t*>(call.output) + run.at, run.bytes);
      to.store(Chunk(run, tile).first + Moving::at(i), batch.packs[i][peer]);
    });
  }
};

template <int kUnroll, int kPeers>
__global__ void __launch_bounds__(kMovers + 32, 2)
    move_runs(const __grid_constant__ MoveCall call) {
  run_moves<kUnroll, kPeers>(call, AsItComes<kUnroll, kPeers>{call});
}

}  // namespace gdrx::gpu
