// SPDX-License-Identifier: Apache-2.0
// Two-shot: rank r reduces the r-th n-th of the vector and sends the result to all. Two latencies;
// 2 (n - 1) / n times the bytes. Thread i of every rank works on the same packs.
#pragma once

#include "collectives/kernels/exchange.cuh"
#include "collectives/kernels/tiling.cuh"

namespace gdrx::gpu {

/// One thread's packs, tile by tile: `kUnroll` of each n-th of the tile, a grid's width apart.
template <class E, int kUnroll, int kPeers>
class TwoShot {
 public:
  __device__ __forceinline__ TwoShot(const Call& call, Patience& patience)
      : call_(call),
        patience_(patience),
        input_(call.input, call.bytes),
        output_(call.output, call.bytes),
        tiling_(call, kUnroll * gridDim.x * blockDim.x),
        threads_(gridDim.x * blockDim.x),
        thread_(blockIdx.x * blockDim.x + threadIdx.x) {}

  __device__ __forceinline__ const Tiling& tiling() const { return tiling_; }

  __device__ __forceinline__ void scatter(std::uint32_t tile, const Lanes& lanes) const {
    const Tile parts = tiling_.tile(tile);
    for (int step = 1; step < call_.ranks; ++step) {
      const int to =
          call_.rank + step < call_.ranks ? call_.rank + step : call_.rank + step - call_.ranks;
      Pack packs[kUnroll];
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (parts.has(to, at(i))) packs[i] = input_.load(parts.place(to, at(i)));
      }
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (parts.has(to, at(i))) {
          send(call_.arena[to], lanes.slot(to, call_.rank, at(i)), packs[i]);
        }
      }
    }
  }

  __device__ __forceinline__ void reduce(std::uint32_t tile, const Lanes& from, const Lanes& to) {
    const Tile parts = tiling_.tile(tile);
    Pack mine[kUnroll];
    const auto wants = [&](int i) { return parts.has(call_.rank, at(i)); };
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (wants(i)) mine[i] = input_.load(parts.place(call_.rank, at(i)));
    }
    Batch<kUnroll, kPeers> batch;
    batch.receive(
        call_, from, [&](int i) { return at(i); }, [&](int, int i) { return wants(i); }, patience_,
        Stage::reducing);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (!wants(i)) continue;
      const Pack sum = batch.template reduce<E>(call_, i, mine[i]);
      send_all(call_, to, at(i), sum);
      output_.store(parts.place(call_.rank, at(i)), sum);
    }
  }

  __device__ __forceinline__ void gather(std::uint32_t tile, const Lanes& from) {
    const Tile parts = tiling_.tile(tile);
    const auto wants = [&](int rank, int i) { return parts.has(rank, at(i)); };
    Batch<kUnroll, kPeers> batch;
    batch.receive(
        call_, from, [&](int i) { return at(i); }, wants, patience_, Stage::gathering);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
#pragma unroll
      for (int peer = 0; peer < kPeers; ++peer) {
        const int rank = batch.rank_of(call_, peer);
        if (rank >= call_.ranks || !wants(rank, i)) continue;
        output_.store(parts.place(rank, at(i)), batch.packs[i][peer]);
      }
    }
  }

 private:
  __device__ __forceinline__ std::uint32_t at(int i) const {
    return static_cast<std::uint32_t>(i) * threads_ + thread_;
  }

  const Call& call_;
  Patience& patience_;
  UserBuffer input_;
  UserBuffer output_;
  Tiling tiling_;
  std::uint32_t threads_;
  std::uint32_t thread_;
};

/// The grid covers an n-th with kUnroll packs a thread.
template <class E, int kUnroll, int kPeers>
__global__ void __launch_bounds__(kThreads, is_light(kUnroll, kPeers) ? 2 : 1)
    two_shot(const __grid_constant__ Call call) {
  begin<is_light(kUnroll, kPeers)>();
  Patience patience(call);
  TwoShot<E, kUnroll, kPeers> work(call, patience);
  const Entry entry = enter(call, false, patience);
  const std::uint32_t lane = work.tiling().lane();
  const Lanes parts{entry.half, lane};
  const Lanes results{entry.half + static_cast<std::uint32_t>(call.ranks - 1) * lane, lane};
  work.scatter(0, parts);
  book(call, entry, false);
  work.reduce(0, parts, results);
  work.gather(0, results);
}

/// Any grid, tile after tile; while a tile is reduced the next is on its way, and so are the
/// results of the one before. Slots of results are written again two tiles later, those of parts
/// three: their writer has then received what this block sent after the fence that followed their
/// clearing.
template <class E, int kUnroll, int kPeers>
__global__ void __launch_bounds__(kThreads / 2, 2)
    two_shot_tiled(const __grid_constant__ Call call) {
  begin<false>();
  Patience patience(call);
  TwoShot<E, kUnroll, kPeers> work(call, patience);
  const Entry entry = enter(call, true, patience);
  const std::uint32_t lane = work.tiling().lane();
  const std::uint32_t set = static_cast<std::uint32_t>(call.ranks - 1) * lane;
  const std::uint32_t tiles = work.tiling().tiles();
  work.scatter(0, {0, lane});
  book(call, entry, true);
  for (std::uint32_t tile = 0; tile <= tiles; ++tile) {
    if (tile > 0) work.gather(tile - 1, {(3 + (tile - 1) % 2) * set, lane});
    if (tile == tiles) break;
    block_fence();
    if (tile + 1 < tiles) work.scatter(tile + 1, {(tile + 1) % 3 * set, lane});
    work.reduce(tile, {tile % 3 * set, lane}, {(3 + tile % 2) * set, lane});
  }
}

}  // namespace gdrx::gpu
