// SPDX-License-Identifier: Apache-2.0
// What of a message goes in bulk: see pairs.hpp. A channel's ring of tiles, as one of its sides
// knows it. Nothing here waits.
#pragma once

#include "collectives/kernels/emptied.cuh"
#include "collectives/kernels/exchange.cuh"
#include "collectives/kernels/pairs.hpp"

namespace gdrx::gpu {

class TileRing {
 public:
  /// `channel`: of those of the pair.
  __device__ __forceinline__ void begin(const PairCall& call, int peer, bool sends,
                                        std::uint32_t channel) {
    const TilesKept kept = *kept_of(call, peer, sends, channel);
    count_ = known_ = kept.count;
    at_ = kept.at;
  }
  __device__ __forceinline__ void keep(const PairCall& call, int peer, bool sends,
                                       std::uint32_t channel) const {
    *kept_of(call, peer, sends, channel) = {count_, at_};
  }

  /// By a sender: whether, as far as it knows, all that it sent is taken.
  __device__ __forceinline__ bool is_empty() const { return known_ == count_; }
  __device__ __forceinline__ bool is_empty(const PairCall& call, int peer, std::uint32_t channel) {
    if (!is_empty()) ask(call, kTilesTakenAt, peer, channel);
    return is_empty();
  }
  __device__ __forceinline__ bool has_room(const PairCall& call, int peer, std::uint32_t channel) {
    if (count_ - known_ >= call.channels.tiles) ask(call, kTilesTakenAt, peer, channel);
    return count_ - known_ < call.channels.tiles;
  }
  /// By a receiver: whether the next tile has come.
  __device__ __forceinline__ bool has_come(const PairCall& call, int peer, std::uint32_t channel) {
    if (is_empty()) ask(call, kTilesComeAt, peer, channel);
    return !is_empty();
  }

  /// The thread's packs of the next tile, 32 apart.
  __device__ __forceinline__ Pack* next(const PairCall& call, int receiver, int sender,
                                        std::uint32_t channel) const {
    const std::uint64_t lane = lane_of(receiver, sender) * call.channels.bulk_bytes;
    const std::uint32_t tile = channel * call.channels.tiles + at_;
    return reinterpret_cast<Pack*>(call.arena[receiver] + kBulkAt + lane) + tile * kBulkTile +
           threadIdx.x % 32;
  }
  /// The next one is filled, or taken. `last`: of what this channel has of a message.
  __device__ __forceinline__ void go_on(const PairCall& call, int peer, bool sends,
                                        std::uint32_t channel, bool last) {
    ++count_;
    if (++at_ == call.channels.tiles) at_ = 0;
    if (!last && count_ % kTilesToTell != 0) return;
    __syncwarp();
    if (threadIdx.x % 32 != 0) return;
    fence_system();
    const std::uint64_t at = sends ? kTilesComeAt : kTilesTakenAt;
    store_shared(word<Tiles>(call, at, peer, call.rank, channel), Tiles{count_});
  }

 private:
  template <class Word>
  __device__ __forceinline__ static Word* word(const PairCall& call, std::uint64_t at, int owner,
                                               int peer, std::uint32_t channel) {
    return reinterpret_cast<Word*>(call.arena[owner] + at) +
           (lane_of(owner, peer) * call.channels.count + channel);
  }
  __device__ __forceinline__ static TilesKept* kept_of(const PairCall& call, int peer, bool sends,
                                                       std::uint32_t channel) {
    return word<TilesKept>(call, sends ? kTilesSentAt : kTilesGotAt, call.rank, peer, channel);
  }
  /// All threads of a warp know the same.
  __device__ __forceinline__ void ask(const PairCall& call, std::uint64_t at, int peer,
                                      std::uint32_t channel) {
    const auto* const told = word<Tiles>(call, at, call.rank, peer, channel);
    known_ = __reduce_min_sync(~0U, static_cast<std::uint32_t>(load_acquired(told)));
  }

  std::uint32_t count_;  // that went through the ring, on this side
  std::uint32_t known_;  // on the other side
  std::uint32_t at_;     // of the ring
};

struct NoTiles {
  __device__ __forceinline__ static constexpr bool is_empty() { return true; }
};

/// A tile of a user's buffer: its thread's packs are 32 apart.
struct BulkPart {
  std::uint64_t first;
  std::uint64_t end;

  __device__ __forceinline__ std::uint64_t pack(int i) const {
    return first + threadIdx.x % 32 + static_cast<std::uint64_t>(i) * 32;
  }
  /// Then nothing is asked pack by pack.
  __device__ __forceinline__ bool is_whole(const UserBuffer& buffer) const {
    return end - first == kBulkTile && buffer.is_plain(end - 1);
  }
};

__device__ __forceinline__ void fill_tile(Pack* tile, const UserBuffer& from,
                                          const BulkPart& part) {
  Pack packs[kBulkTileUnroll];
  if (part.is_whole(from)) {
    const Pack* const at = from.place(part.pack(0));
#pragma unroll
    for (int i = 0; i < kBulkTileUnroll; ++i) packs[i] = at[i * 32];
#pragma unroll
    for (int i = 0; i < kBulkTileUnroll; ++i) tile[i * 32] = packs[i];
    return;
  }
#pragma unroll 4
  for (int i = 0; i < kBulkTileUnroll; ++i) {
    if (part.pack(i) < part.end) tile[i * 32] = from.load(part.pack(i));
  }
}

__device__ __forceinline__ void take_tile(const Pack* tile, const UserBuffer& to,
                                          const BulkPart& part) {
  if (part.is_whole(to)) {
    Pack packs[kBulkTileUnroll];
    Pack* const at = const_cast<Pack*>(to.place(part.pack(0)));
#pragma unroll
    for (int i = 0; i < kBulkTileUnroll; ++i) packs[i] = tile[i * 32];
#pragma unroll
    for (int i = 0; i < kBulkTileUnroll; ++i) at[i * 32] = packs[i];
    return;
  }
#pragma unroll 4
  for (int i = 0; i < kBulkTileUnroll; ++i) {
    if (part.pack(i) < part.end) to.store(part.pack(i), tile[i * 32]);
  }
}

}  // namespace gdrx::gpu
