// SPDX-License-Identifier: Apache-2.0
// A channel of what comes from one rank in bulk and goes on to all others while it comes: a tile is
// fetched once, and written to this rank's buffer and to the rings of all.
#pragma once

#include "collectives/kernels/moved_messages.hpp"
#include "collectives/kernels/pair_bulk.cuh"
#include "collectives/kernels/pair_messages.cuh"

namespace gdrx::gpu {

/// None of a warp's.
struct NoRelay {
  using AnyCall = PairCall;
};

template <InBulk kBulk>
class PairRelay {
 public:
  using AnyCall = MovedMessages;
  using Memory = typename BulkSide<kBulk>::Memory;

  /// By all threads of the warp, as all that follows.
  __device__ __forceinline__ void begin(const MovedMessages& call, std::uint32_t channel) {
    from_ = static_cast<int>(call.relay_from);
    channel_ = channel;
    first_ = channel * call.relayed.width;
    const std::uint64_t all = packs_of(call.relayed.bytes);
    packs_ = first_ < all ? all - first_ : 0;
    if (packs_ > call.relayed.width) packs_ = call.relayed.width;
    if (packs_ == 0) return;
    come_.begin(call, from_, false, channel);
    each_receiver(call, [&](int to, TileRing& ring) { ring.begin(call, to, true, channel); });
    is_empty_ = false;
  }

  __device__ __forceinline__ bool done() const { return done_ == packs_ && is_empty_; }
  /// Whom the last step waited for.
  __device__ __forceinline__ int peer() const { return waits_for_; }
  __device__ __forceinline__ Stage stage() const {
    return waits_for_ == from_ ? Stage::receiving : Stage::sending;
  }
  __device__ __forceinline__ std::uint32_t number() const { return channel_; }

  /// The next tiles, unless they have to wait: then false.
  __device__ __forceinline__ bool step(const MovedMessages& call, Memory& memory) {
    if (done_ == packs_) {
      tell_of_put(call);
      return are_taken(call);
    }
    const std::uint64_t rest = packs_ - done_;
    const std::uint32_t tiles = ready(call, rest);
    if (tiles == 0) {
      tell_of_put(call);
      return false;
    }
    const std::uint32_t most = tiles * kBulkTile;
    const std::uint32_t packs = rest < most ? static_cast<std::uint32_t>(rest) : most;
    const BulkPart part{first_ + done_, first_ + done_ + packs};
    const UserBuffer to(call.relayed.at, call.relayed.bytes);
    bool staged = false;
    if constexpr (kBulk == InBulk::staged) {
      staged = to.is_plain(part.end - 1);
      if (staged) move_staged(call, memory, to, part);
    }
    if (!staged) move_in_threads(call, to, part);
    done_ += packs;
    return true;
  }

  /// For the next call.
  __device__ __forceinline__ void keep(const MovedMessages& call) {
    if (packs_ == 0 || threadIdx.x % 32 != 0) return;
    come_.keep(call, from_, false, channel_);
    each_receiver(call, [&](int to, TileRing& ring) { ring.keep(call, to, true, channel_); });
  }

 private:
  /// visit(rank, its ring) for all but this rank and the one that it comes from.
  template <class Visit>
  __device__ __forceinline__ void each_receiver(const MovedMessages& call, Visit visit) {
#pragma unroll 1
    for (int step = 1, i = 0; step < call.ranks; ++step) {
      const int to = rank_above(call, step);
      if (to != from_) visit(to, go_[i++]);
    }
  }

  /// For how many tiles of `rest` packs all is ready.
  __device__ __forceinline__ std::uint32_t ready(const MovedMessages& call, std::uint64_t rest) {
    std::uint32_t tiles = call.tiles_at_once;
    if (rest < tiles * kBulkTile) {
      tiles = (static_cast<std::uint32_t>(rest) + kBulkTile - 1) / kBulkTile;
    }
    tiles = come_.ready(call, from_, false, channel_, tiles);
    if (tiles == 0) waits_for_ = from_;
    each_receiver(call, [&](int to, TileRing& ring) {
      if (tiles == 0) return;
      tiles = ring.ready(call, to, true, channel_, tiles);
      if (tiles == 0) waits_for_ = to;
    });
    return tiles;
  }
  __device__ __forceinline__ bool are_taken(const MovedMessages& call) {
    is_empty_ = true;
    each_receiver(call, [&](int to, TileRing& ring) {
      if (ring.is_empty(call, to, channel_)) return;
      is_empty_ = false;
      waits_for_ = to;
    });
    return is_empty_;
  }

  __device__ __forceinline__ void move_staged(const MovedMessages& call, Memory& staging,
                                              const UserBuffer& to, const BulkPart& part) {
    constexpr std::uint32_t kBytes = kBulkTile * sizeof(Pack);
    const bool does_it = threadIdx.x % 32 == 0;
    if (does_it) {
      show_to_copies();
      staging.expect(static_cast<std::uint32_t>((part.end - part.first) * sizeof(Pack)));
      for (std::uint32_t i = 0; i < part.tiles(); ++i) {
        staging.fetch(i * kBytes, come_.next(call, call.rank, from_, channel_, i), part.bytes(i));
      }
    }
    tell_of_put(call);
    if (does_it) {
      staging.await();
      each_receiver(call, [&](int receiver, TileRing& ring) {
        for (std::uint32_t i = 0; i < part.tiles(); ++i) {
          staging.put(ring.next(call, receiver, call.rank, channel_, i), i * kBytes, part.bytes(i));
        }
      });
      for (std::uint32_t i = 0; i < part.tiles(); ++i) {
        staging.put(const_cast<Pack*>(to.place(part.at(i))), i * kBytes, part.bytes(i));
      }
      close_copies_out();
    }
    __syncwarp();
    come_.go_on(call, part.tiles());
    if (does_it) come_.tell_fetched(call, from_, channel_);
    each_receiver(call, [&](int, TileRing& ring) { ring.go_on(call, part.tiles()); });
    put_ = true;
  }

  __device__ __forceinline__ void move_in_threads(const MovedMessages& call, const UserBuffer& to,
                                                  const BulkPart& part) {
    tell_of_put(call);
    for (std::uint32_t i = 0; i < part.tiles(); ++i) {
      Pack* const come = come_.next(call, call.rank, from_, channel_, i);
      const std::uint64_t packs = part.bytes(i) / sizeof(Pack);
      move_by_threads<false>(come, to, part.at(i), part.at(i) + packs);
      each_receiver(call, [&](int receiver, TileRing& ring) {
        Pack* const slots = ring.next(call, receiver, call.rank, channel_, i);
        move_by_threads<false>(come, UserBuffer(slots, part.bytes(i)), 0, packs);
      });
    }
    come_.go_on(call, part.tiles());
    come_.tell(call, from_, false, channel_);
    each_receiver(call, [&](int, TileRing& ring) { ring.go_on(call, part.tiles()); });
    tell(call);
  }

  /// Before it waits: what is on its way is told of when it is there.
  __device__ __forceinline__ void tell_of_put(const MovedMessages& call) {
    if (kBulk != InBulk::staged || !put_) return;
    put_ = false;
    if (threadIdx.x % 32 == 0) await_copies_out();
    tell(call);
  }
  /// All receivers, behind one fence.
  __device__ __forceinline__ void tell(const MovedMessages& call) {
    __syncwarp();
    if (threadIdx.x % 32 != 0) return;
    fence_system();
    each_receiver(call, [&](int to, TileRing& ring) { ring.tell_filled(call, to, channel_); });
  }

  int from_;
  int waits_for_ = 0;
  bool put_ = false;  // tiles, of which the receivers have not been told
  bool is_empty_ = true;
  std::uint32_t channel_;
  std::uint64_t first_;      // pack of the message, of this channel's run
  std::uint64_t packs_ = 0;  // of that run
  std::uint64_t done_ = 0;   // of these
  TileRing come_;
  TileRing go_[kMaxRanks - 2];
};

}  // namespace gdrx::gpu
