// SPDX-License-Identifier: Apache-2.0
// Two-shot: rank r reduces the r-th n-th of the vector and sends the result to all. Two latencies;
// 2 (n - 1) / n times the bytes. Thread i of every rank works on the same packs.
#pragma once

#include "collectives/kernels/exchange.cuh"

namespace gdrx::gpu {

/// One thread's packs: of each n-th, tile by tile, `kUnroll` of a tile, a grid's width apart.
template <class E, int kUnroll, int kPeers>
class TwoShot {
 public:
  __device__ __forceinline__ TwoShot(const Call& call, Patience& patience)
      : call_(call),
        patience_(patience),
        input_(call.input, call.bytes),
        output_(call.output, call.bytes),
        packs_(packs_of(call.bytes)),
        part_((packs_ + static_cast<std::uint32_t>(call.ranks) - 1) /
              static_cast<std::uint32_t>(call.ranks)),
        threads_(gridDim.x * blockDim.x),
        thread_(blockIdx.x * blockDim.x + threadIdx.x) {}

  __device__ __forceinline__ std::uint32_t lane() const { return kUnroll * threads_; }
  __device__ __forceinline__ std::uint32_t tiles() const {
    return static_cast<std::uint32_t>((part_ + lane() - 1) / lane());
  }

  __device__ __forceinline__ void scatter(std::uint32_t tile, const Lanes& lanes) const {
    for (int step = 1; step < call_.ranks; ++step) {
      const int to =
          call_.rank + step < call_.ranks ? call_.rank + step : call_.rank + step - call_.ranks;
      Pack packs[kUnroll];
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (has(tile, to, i)) packs[i] = input_.load(place(tile, to, i));
      }
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (has(tile, to, i)) send(call_.arena[to], lanes.slot(to, call_.rank, at(i)), packs[i]);
      }
    }
  }

  __device__ __forceinline__ void reduce(std::uint32_t tile, const Lanes& from, const Lanes& to) {
    Pack mine[kUnroll];
    const auto wants = [&](int i) { return has(tile, call_.rank, i); };
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (wants(i)) mine[i] = input_.load(place(tile, call_.rank, i));
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
      output_.store(place(tile, call_.rank, i), sum);
    }
  }

  __device__ __forceinline__ void gather(std::uint32_t tile, const Lanes& from) {
    const auto wants = [&](int rank, int i) { return has(tile, rank, i); };
    Batch<kUnroll, kPeers> batch;
    batch.receive(
        call_, from, [&](int i) { return at(i); }, wants, patience_, Stage::gathering);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
#pragma unroll
      for (int peer = 0; peer < kPeers; ++peer) {
        const int rank = batch.rank_of(call_, peer);
        if (rank >= call_.ranks || !wants(rank, i)) continue;
        output_.store(place(tile, rank, i), batch.packs[i][peer]);
      }
    }
  }

 private:
  __device__ __forceinline__ std::uint32_t at(int i) const {
    return static_cast<std::uint32_t>(i) * threads_ + thread_;
  }
  __device__ __forceinline__ std::uint64_t in_part(std::uint32_t tile, int i) const {
    return static_cast<std::uint64_t>(tile) * lane() + at(i);
  }
  __device__ __forceinline__ std::uint64_t place(std::uint32_t tile, int owner, int i) const {
    return static_cast<std::uint64_t>(owner) * part_ + in_part(tile, i);
  }
  /// The last n-th may be short.
  __device__ __forceinline__ bool has(std::uint32_t tile, int owner, int i) const {
    return in_part(tile, i) < part_ && place(tile, owner, i) < packs_;
  }

  const Call& call_;
  Patience& patience_;
  UserBuffer input_;
  UserBuffer output_;
  std::uint64_t packs_;
  std::uint64_t part_;
  std::uint32_t threads_;
  std::uint32_t thread_;
};

/// The grid covers an n-th with kUnroll packs a thread.
template <class E, int kUnroll, int kPeers>
__global__ void __launch_bounds__(kThreads) two_shot(const __grid_constant__ Call call) {
  begin();
  Patience patience(call);
  TwoShot<E, kUnroll, kPeers> work(call, patience);
  const Entry entry = enter(call, false, patience);
  const Lanes parts{entry.half, work.lane()};
  const Lanes results{entry.half + static_cast<std::uint32_t>(call.ranks - 1) * work.lane(),
                      work.lane()};
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
__global__ void __launch_bounds__(kThreads) two_shot_tiled(const __grid_constant__ Call call) {
  begin();
  Patience patience(call);
  TwoShot<E, kUnroll, kPeers> work(call, patience);
  const Entry entry = enter(call, true, patience);
  const std::uint32_t lane = work.lane();
  const std::uint32_t set = static_cast<std::uint32_t>(call.ranks - 1) * lane;
  const std::uint32_t tiles = work.tiles();
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
