// SPDX-License-Identifier: Apache-2.0
// Two-shot: rank r reduces the r-th n-th of the vector and sends the result to all. Two latencies;
// 2 (n - 1) / n times the bytes. Thread i of every rank works on the same packs.
#pragma once

#include "collectives/kernels/exchange.cuh"
#include "collectives/kernels/tiling.cuh"

namespace gdrx::gpu {

/// One tile: the grid covers an n-th with kUnroll packs a thread. Whatever can be known before the
/// kernel ahead has ended is worked out before.
template <class E, int kUnroll, int kPeers>
__device__ __forceinline__ void run_two_shot(const Call& call) {
  using Packs = Batch<kUnroll, kPeers>;
  WaitGuard guard(call);
  const UserBuffer input(call.input, call.bytes);
  const Sums output(call);
  const std::uint32_t threads = blocks_of_call() * blockDim.x;
  const std::uint32_t thread = block_of_call() * blockDim.x + threadIdx.x;
  const std::uint32_t lane = kUnroll * threads;
  const std::uint32_t set = static_cast<std::uint32_t>(call.ranks - 1) * lane;
  const auto packs = static_cast<std::uint32_t>(packs_of(call.bytes));
  const std::uint32_t part =
      (packs + static_cast<std::uint32_t>(call.ranks) - 1) / static_cast<std::uint32_t>(call.ranks);
  const auto at = [&](int i) { return static_cast<std::uint32_t>(i) * threads + thread; };
  const auto place = [&](int rank, int i) {
    return static_cast<std::uint32_t>(rank) * part + at(i);
  };
  const auto has = [&](int rank, int i) { return at(i) < part && place(rank, i) < packs; };
  const Peers<kPeers> peers(call, lane, thread);
  std::uint32_t scattered = 0, reduced = 0, gathered = 0;
  Packs::each_of(call, [&](int i, int peer) {
    if (has(peers.rank_of(peer), i)) scattered |= Packs::bit(i, peer);
    if (has(call.rank, i)) reduced |= Packs::bit(i, peer);
    if (has(Packs::rank_of(call, peer), i)) gathered |= Packs::bit(i, peer);
  });
  bool own[kUnroll];
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) own[i] = has(call.rank, i);
  std::uint32_t from[kPeers];
#pragma unroll
  for (int step = 0; step < kPeers; ++step) from[step] = worked_out(place(peers.rank_of(step), 0));
  Control* const control = worked_out(control_of(call, call.rank));
  const Announcement announcement(call);
  begin<is_light(kUnroll, kPeers)>();

  // On their way while the control page is read: all take as long as one.
  Packs theirs;
  Pack mine[kUnroll];
  Packs::each(scattered, [&](int i, int step) {
    theirs.packs[i][step] = input.load(from[step] + static_cast<std::uint32_t>(i) * threads);
  });
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    if (own[i]) mine[i] = input.load(place(call.rank, i));
  }
  const Entry entry = entry_barrier(call, control, false, guard, announcement);
  Packs::each(guard.expired() ? 0 : scattered, [&](int i, int step) {
    peers.send(step, entry.half + static_cast<std::uint32_t>(i) * threads, theirs.packs[i][step]);
  });
  advance_epoch(call, entry, false);

  Packs batch;
  const Places arrivals{entry.half + thread, lane, threads};
  Watch watch(call, entry, thread == 0);
  batch.receive(call, arrivals, reduced, guard, Stage::reducing, watch);
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    if (!own[i]) continue;
    const Pack sum = batch.template reduce<E>(call, i, mine[i]);
    if (!guard.expired()) {
      peers.send_all(entry.half + set + static_cast<std::uint32_t>(i) * threads, sum);
    }
    output.store(place(call.rank, i), sum);
  }
  batch.clear(call, arrivals, reduced);

  const Places results{entry.half + set + thread, lane, threads};
  batch.receive(call, results, gathered, guard, Stage::gathering);
  Packs::each(gathered, [&](int i, int peer) {
    output.store(place(Packs::rank_of(call, peer), i), batch.packs[i][peer]);
  });
  batch.clear(call, results, gathered);
  watch.settle(guard);
}

/// Any grid, tile after tile; while a tile is reduced the next is on its way, and so are the
/// results of the one before. Slots of results are written again two tiles later, those of parts
/// three: their writer has then received what this block sent after the fence that followed their
/// clearing.
template <class E, int kUnroll, int kPeers>
__device__ __forceinline__ void run_two_shot_tiled(const Call& call) {
  using Packs = Batch<kUnroll, kPeers>;
  begin<false>();
  WaitGuard guard(call);
  const UserBuffer input(call.input, call.bytes);
  const Sums output(call);
  const std::uint32_t threads = blocks_of_call() * blockDim.x;
  const std::uint32_t thread = block_of_call() * blockDim.x + threadIdx.x;
  const std::uint32_t lane = kUnroll * threads;
  const std::uint32_t set = static_cast<std::uint32_t>(call.ranks - 1) * lane;
  const Tiling tiling(call, lane);
  const auto at = [&](int i) { return static_cast<std::uint32_t>(i) * threads + thread; };

  const auto scatter = [&](std::uint32_t tile) {
    const Tile parts = tiling.tile(tile);
    for (int step = 1; step < call.ranks; ++step) {
      const int to = rank_above(call, step);
      const std::uint32_t first = tile % 3 * set + lane_of(to, call.rank) * lane;
      Pack packs[kUnroll];
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (parts.has(to, at(i))) packs[i] = input.load(parts.place(to, at(i)));
      }
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (parts.has(to, at(i)) && !guard.expired()) {
          send(call.arena[to], first + at(i), packs[i]);
        }
      }
    }
  };
  const auto reduce = [&](std::uint32_t tile) {
    const Tile parts = tiling.tile(tile);
    const auto has = [&](int, int i) { return parts.has(call.rank, at(i)); };
    Pack mine[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (has(0, i)) mine[i] = input.load(parts.place(call.rank, at(i)));
    }
    Packs batch;
    const std::uint32_t wanted = Packs::mask(call, has);
    const Places places{tile % 3 * set + thread, lane, threads};
    batch.receive(call, places, wanted, guard, Stage::reducing);
    const std::uint32_t results = (3 + tile % 2) * set;
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (!has(0, i)) continue;
      const Pack sum = batch.template reduce<E>(call, i, mine[i]);
      if (!guard.expired()) send_all(call, lane, results + at(i), sum);
      output.store(parts.place(call.rank, at(i)), sum);
    }
    batch.clear(call, places, wanted);
  };
  const auto gather = [&](std::uint32_t tile) {
    const Tile parts = tiling.tile(tile);
    Packs batch;
    const std::uint32_t wanted =
        Packs::mask(call, [&](int rank, int i) { return parts.has(rank, at(i)); });
    const Places places{(3 + tile % 2) * set + thread, lane, threads};
    batch.receive(call, places, wanted, guard, Stage::gathering);
    Packs::each(wanted, [&](int i, int peer) {
      output.store(parts.place(Packs::rank_of(call, peer), at(i)), batch.packs[i][peer]);
    });
    batch.clear(call, places, wanted);
  };

  const Entry entry = entry_barrier(call, true, guard);
  const std::uint32_t tiles = tiling.tiles();
  scatter(0);
  advance_epoch(call, entry, true);
  for (std::uint32_t tile = 0; tile <= tiles; ++tile) {
    if (tile > 0) gather(tile - 1);
    if (tile == tiles) break;
    block_fence();
    if (tile + 1 < tiles) scatter(tile + 1);
    reduce(tile);
  }
}

template <class E, int kUnroll, int kPeers>
__global__ void __launch_bounds__(kThreads, is_light(kUnroll, kPeers) ? 2 : 1)
    two_shot(const __grid_constant__ Call call) {
  run_two_shot<E, kUnroll, kPeers>(call);
}

template <class E, int kUnroll, int kPeers>
__global__ void __launch_bounds__(kThreads / 2, 2)
    two_shot_tiled(const __grid_constant__ Call call) {
  run_two_shot_tiled<E, kUnroll, kPeers>(call);
}

}  // namespace gdrx::gpu
