// SPDX-License-Identifier: Apache-2.0
// One-shot of two ranks for vectors of any size, tile after tile. Of two ranks it moves no byte
// more than any other algorithm, and nothing that a rank sends depends on what it receives.
#pragma once

#include "collectives/kernels/emptied.cuh"
#include "collectives/kernels/exchange.cuh"

namespace gdrx::gpu {

/// Any grid; the last warp of a block moves no data. A tile is `kUnroll` packs a thread. Sets of
/// slots are used in turn, two at least: with one, both ranks would wait for room before they
/// receive. A peer that is a call ahead has received all that this rank sends, and needs no room.
template <class E, int kUnroll>
__device__ __forceinline__ void run_one_shot_tiled(const Call& call) {
  using Packs = Batch<kUnroll, 1>;
  begin<false>();
  WaitGuard guard(call);
  const UserBuffer input(call.input, call.bytes);
  const Sums output(call);
  const std::uint32_t workers = blockDim.x - 32;
  const std::uint32_t threads = blocks_of_call() * workers;
  const std::uint32_t thread = block_of_call() * workers + threadIdx.x;
  const std::uint32_t width = kUnroll * threads;
  const std::uint64_t packs = packs_of(call.bytes);
  const auto tiles = static_cast<std::uint32_t>((packs + width - 1) / width);
  const std::uint32_t sets = kSlots / 2 / width;
  const bool works = threadIdx.x < workers;
  const int peer = 1 - call.rank;
  Control* const control = control_of(call, call.rank);
  const Announcement announcement(call);
  const auto place = [&](std::uint32_t tile, int i) {
    return static_cast<std::uint64_t>(tile) * width + static_cast<std::uint32_t>(i) * threads +
           thread;
  };
  Pack own[kUnroll]{}, ahead[kUnroll]{}, later[kUnroll]{};
  const auto fetch = [&](std::uint32_t tile, Pack* to) {
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (place(tile, i) < packs) to[i] = input.load(place(tile, i));
    }
  };
  if (works) fetch(0, own);
  std::uint32_t* const by_warp = block_memory<std::uint32_t, kThreads / 2 / 32>();
  if (threadIdx.x < workers / 32) by_warp[threadIdx.x] = 0;
  const Entry entry = entry_barrier(call, control, false, guard, announcement);
  advance_epoch(call, entry, false);
  const Emptied emptied(by_warp, workers / 32);
  if (!works) {
    emptied.tell(&control_of(call, peer)->room[block_of_call()], entry.calls, tiles);
    return;
  }

  std::uint32_t room = sets;  // tiles that there is room for
  std::uint32_t sending = 0;  // the set of the tile that is sent next, and of the one that comes
  std::uint32_t coming = 0;
  const auto send_tile = [&](std::uint32_t tile, const Pack* from) {
    while (tile >= room) {
      room = emptied_by_peer(&control->room[block_of_call()], entry.calls) + sets;
      if (tile >= room && !guard.keep_waiting(peer, Stage::sending, block_of_call())) break;
    }
    guard.arrived();
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (place(tile, i) >= packs || guard.expired()) continue;
      const std::uint32_t slot =
          entry.half + sending * width + static_cast<std::uint32_t>(i) * threads + thread;
      send(call.arena[peer], slot, from[i]);
    }
    if (++sending == sets) sending = 0;
  };
  send_tile(0, own);
  if (tiles > 1) fetch(1, ahead);
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) send_tile(tile + 1, ahead);
    if (tile + 2 < tiles) fetch(tile + 2, later);
    Packs batch;
    const std::uint32_t wanted =
        Packs::mask(call, [&](int, int i) { return place(tile, i) < packs; });
    const Places places{entry.half + coming * width + thread, 0, threads};
    if (++coming == sets) coming = 0;
    Watch watch(call, entry, thread == 0 && tile == 0);
    batch.receive(call, places, wanted, guard, Stage::reducing, watch);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (place(tile, i) >= packs) continue;
      output.store(place(tile, i), batch.template reduce<E>(call, i, own[i]));
    }
    batch.clear(call, places, wanted);
    watch.settle(guard);
    emptied.set(tile + 1);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      own[i] = ahead[i];
      ahead[i] = later[i];
    }
  }
}

template <class E, int kUnroll>
__global__ void __launch_bounds__(kThreads / 2 + 32, 2)
    one_shot_tiled(const __grid_constant__ Call call) {
  run_one_shot_tiled<E, kUnroll>(call);
}

}  // namespace gdrx::gpu
