// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter and all-gather: the halves of two-shot, each of a vector whose n-ths the caller
// gives: block r belongs to rank r. Thread i of every rank works on the same packs.
#pragma once

#include "collectives/kernels/exchange.cuh"

namespace gdrx::gpu {

/// One thread's packs of each block, tile by tile: `kUnroll` of a tile, a grid's width apart. All
/// blocks have the same packs: one that is short or empty counts as full, its packs read as zero
/// and go nowhere. So every thread hears of every peer in every tile, and that is what lets a slot
/// be written again four tiles later: its writer has by then received what its reader sent after
/// the fence that followed the slot's clearing.
template <int kUnroll>
class Blocks {
 public:
  static constexpr std::uint32_t kSets = 4;

  __device__ __forceinline__ Blocks(const Call& call, const Entry& entry)
      : call_(call),
        begin_(entry.half),
        packs_(packs_of(call.block)),
        threads_(blocks_of_call() * blockDim.x),
        thread_(block_of_call() * blockDim.x + threadIdx.x) {}

  __device__ __forceinline__ std::uint32_t lane() const { return kUnroll * threads_; }
  __device__ __forceinline__ std::uint32_t tiles() const {
    return static_cast<std::uint32_t>((packs_ + lane() - 1) / lane());
  }
  __device__ __forceinline__ std::uint32_t at(int i) const {
    return static_cast<std::uint32_t>(i) * threads_ + thread_;
  }
  /// Of the block.
  __device__ __forceinline__ std::uint64_t place(std::uint32_t tile, int i) const {
    return static_cast<std::uint64_t>(tile) * lane() + at(i);
  }
  __device__ __forceinline__ bool has(std::uint32_t tile, int i) const {
    return place(tile, i) < packs_;
  }
  /// Of all threads and tiles.
  __device__ __forceinline__ bool is_first(std::uint32_t tile) const {
    return tile == 0 && thread_ == 0;
  }
  /// The first slot of a tile.
  __device__ __forceinline__ std::uint32_t first(std::uint32_t tile) const {
    return begin_ + tile % kSets * (static_cast<std::uint32_t>(call_.ranks - 1) * lane());
  }
  __device__ __forceinline__ Places places(std::uint32_t tile) const {
    return {first(tile) + thread_, lane(), threads_};
  }
  /// Bytes of a block that lie in the vector.
  __device__ __forceinline__ std::uint64_t bytes(int owner) const {
    const std::uint64_t begin = static_cast<std::uint64_t>(owner) * call_.block;
    const std::uint64_t rest = begin < call_.bytes ? call_.bytes - begin : 0;
    return rest < call_.block ? rest : call_.block;
  }
  __device__ __forceinline__ UserBuffer of(const void* vector, int owner) const {
    const std::uint64_t begin = static_cast<std::uint64_t>(owner) * call_.block;
    return {static_cast<const std::uint8_t*>(vector) + begin, bytes(owner)};
  }

 private:
  const Call& call_;
  std::uint32_t begin_;
  std::uint64_t packs_;
  std::uint32_t threads_;
  std::uint32_t thread_;
};

/// A block: of the vector `call.input`, reduced, to `into`. `whole`: any grid, tile after tile;
/// else the grid covers a block. `meanwhile()`: while the first packs are on their way.
template <class E, int kUnroll, int kPeers, class Meanwhile>
__device__ __forceinline__ void scatter_blocks(const Call& call, void* into, bool whole,
                                               WaitGuard& guard, Meanwhile meanwhile) {
  using Packs = Batch<kUnroll, kPeers>;
  const Entry entry = entry_barrier(call, whole, guard);
  const Blocks<kUnroll> blocks(call, entry);
  const UserBuffer input = blocks.of(call.input, call.rank);
  const UserBuffer output(into, blocks.bytes(call.rank));
  const auto scatter = [&](std::uint32_t tile) {
    for (int step = 1; step < call.ranks; ++step) {
      const int to = rank_above(call, step);
      const std::uint32_t slot = blocks.first(tile) + lane_of(to, call.rank) * blocks.lane();
      const UserBuffer theirs = blocks.of(call.input, to);
      Pack packs[kUnroll];
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (blocks.has(tile, i)) packs[i] = theirs.load(blocks.place(tile, i));
      }
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (blocks.has(tile, i) && !guard.expired()) {
          send(call.arena[to], slot + blocks.at(i), packs[i]);
        }
      }
    }
  };
  scatter(0);
  advance_epoch(call, entry, whole);
  meanwhile();
  const std::uint32_t tiles = blocks.tiles();
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      block_fence();
      scatter(tile + 1);
    }
    Pack mine[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (blocks.has(tile, i)) mine[i] = input.load(blocks.place(tile, i));
    }
    Packs batch;
    const std::uint32_t wanted = Packs::mask(call, [&](int, int i) { return blocks.has(tile, i); });
    Watch watch(call, entry, blocks.is_first(tile));
    batch.receive(call, blocks.places(tile), wanted, guard, Stage::reducing, watch);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (!blocks.has(tile, i)) continue;
      output.store(blocks.place(tile, i), batch.template reduce<E>(call, i, mine[i]));
    }
    batch.clear(call, blocks.places(tile), wanted);
    watch.settle(guard);
  }
}

/// As scatter_blocks(): `from` is this rank's block, the vector `call.output`.
template <int kUnroll, int kPeers>
__device__ __forceinline__ void gather_blocks(const Call& call, const void* from, bool whole,
                                              WaitGuard& guard) {
  using Packs = Batch<kUnroll, kPeers>;
  const Entry entry = entry_barrier(call, whole, guard);
  const Blocks<kUnroll> blocks(call, entry);
  const UserBuffer input(from, blocks.bytes(call.rank));
  const UserBuffer own = blocks.of(call.output, call.rank);
  const auto share = [&](std::uint32_t tile) {
    Pack packs[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (blocks.has(tile, i)) packs[i] = input.load(blocks.place(tile, i));
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (!blocks.has(tile, i)) continue;
      if (!guard.expired()) {
        send_all(call, blocks.lane(), blocks.first(tile) + blocks.at(i), packs[i]);
      }
      own.store(blocks.place(tile, i), packs[i]);
    }
  };
  share(0);
  advance_epoch(call, entry, whole);
  const std::uint32_t tiles = blocks.tiles();
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      block_fence();
      share(tile + 1);
    }
    Packs batch;
    const std::uint32_t wanted = Packs::mask(call, [&](int, int i) { return blocks.has(tile, i); });
    Watch watch(call, entry, blocks.is_first(tile));
    batch.receive(call, blocks.places(tile), wanted, guard, Stage::gathering, watch);
#pragma unroll
    for (int peer = 0; peer < kPeers; ++peer) {
      if (peer >= call.ranks - 1) break;
      const UserBuffer theirs = blocks.of(call.output, batch.rank_of(call, peer));
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (blocks.has(tile, i)) theirs.store(blocks.place(tile, i), batch.packs[i][peer]);
      }
    }
    batch.clear(call, blocks.places(tile), wanted);
    watch.settle(guard);
  }
}

template <class E, int kUnroll, int kPeers>
__global__ void __launch_bounds__(kThreads / 2, 2)
    reduce_scatter(const __grid_constant__ Call call, bool whole) {
  begin<false>();
  WaitGuard guard(call);
  scatter_blocks<E, kUnroll, kPeers>(call, call.output, whole, guard, [] {});
}

template <int kUnroll, int kPeers>
__global__ void __launch_bounds__(kThreads / 2, 2)
    all_gather(const __grid_constant__ Call call, bool whole) {
  begin<false>();
  WaitGuard guard(call);
  gather_blocks<kUnroll, kPeers>(call, call.input, whole, guard);
}

}  // namespace gdrx::gpu
