// SPDX-License-Identifier: Apache-2.0
// What of a message goes in bulk: see pairs.hpp. A channel's ring of tiles, as one of its sides
// knows it, and how tiles get into it and out of it. Nothing here waits for a peer.
#pragma once

#include "collectives/kernels/emptied.cuh"
#include "collectives/kernels/exchange.cuh"
#include "collectives/kernels/pairs.hpp"
#include "collectives/kernels/staging.cuh"

namespace gdrx::gpu {

class TileRing {
 public:
  /// `channel`: of those of the pair.
  __device__ __forceinline__ void begin(const PairCall& call, int peer, bool sends,
                                        std::uint32_t channel) {
    if (channel >= call.channels.bulk) return;
    const TilesKept kept = *kept_of(call, peer, sends, channel);
    count_ = known_ = kept.count;
    at_ = kept.at;
  }
  __device__ __forceinline__ void keep(const PairCall& call, int peer, bool sends,
                                       std::uint32_t channel) const {
    if (channel >= call.channels.bulk) return;
    *kept_of(call, peer, sends, channel) = {count_, at_};
  }

  /// By a sender: whether, as far as it knows, all that it sent is taken.
  __device__ __forceinline__ bool is_empty() const { return known_ == count_; }
  __device__ __forceinline__ bool is_empty(const PairCall& call, int peer, std::uint32_t channel) {
    if (!is_empty()) ask(call, peer, true, channel);
    return is_empty();
  }
  /// Of so many tiles, for how many there is room, or how many have come.
  __device__ __forceinline__ std::uint32_t ready(const PairCall& call, int peer, bool sends,
                                                 std::uint32_t channel, std::uint32_t wanted) {
    if (ready(call, sends) < wanted) ask(call, peer, sends, channel);
    const std::uint32_t all = ready(call, sends);
    return all < wanted ? all : wanted;
  }

  /// The ring's next tile, or the i-th behind it.
  __device__ __forceinline__ Pack* next(const PairCall& call, int receiver, int sender,
                                        std::uint32_t channel, std::uint32_t i) const {
    const std::uint64_t lane = lane_of(receiver, sender) * call.channels.bulk_bytes;
    const std::uint32_t at =
        at_ + i < call.channels.tiles ? at_ + i : at_ + i - call.channels.tiles;
    return reinterpret_cast<Pack*>(call.arena[receiver] + kBulkAt + lane) +
           std::uint64_t{channel * call.channels.tiles + at} * kBulkTile;
  }
  /// So many more are filled, or taken.
  __device__ __forceinline__ void go_on(const PairCall& call, std::uint32_t tiles) {
    count_ += tiles;
    at_ += tiles;
    if (at_ >= call.channels.tiles) at_ -= call.channels.tiles;
  }
  /// The other side, of what the warp has done.
  __device__ __forceinline__ void tell(const PairCall& call, int peer, bool sends,
                                       std::uint32_t channel) const {
    __syncwarp();
    if (threadIdx.x % 32 != 0) return;
    fence_system();  // what the warp wrote into tiles, or read of them, was before the word
    if (sends) {
      tell_filled(call, peer, channel);
    } else {
      tell_fetched(call, peer, channel);
    }
  }
  /// A receiver, by a thread, behind a fence.
  __device__ __forceinline__ void tell_filled(const PairCall& call, int peer,
                                              std::uint32_t channel) const {
    store_shared(word<Tiles>(call, kTilesComeAt, peer, call.rank, channel), Tiles{count_});
  }
  /// A sender, by a thread: of tiles that are in the block's memory that needs no fence.
  __device__ __forceinline__ void tell_fetched(const PairCall& call, int peer,
                                               std::uint32_t channel) const {
    store_shared(word<Tiles>(call, kTilesTakenAt, peer, call.rank, channel), Tiles{count_});
  }

 private:
  template <class Word>
  __device__ __forceinline__ static Word* word(const PairCall& call, std::uint64_t at, int owner,
                                               int peer, std::uint32_t channel) {
    return reinterpret_cast<Word*>(call.arena[owner] + at) +
           (lane_of(owner, peer) * call.channels.bulk + channel);
  }
  __device__ __forceinline__ static TilesKept* kept_of(const PairCall& call, int peer, bool sends,
                                                       std::uint32_t channel) {
    return word<TilesKept>(call, sends ? kTilesSentAt : kTilesGotAt, call.rank, peer, channel);
  }
  __device__ __forceinline__ std::uint32_t ready(const PairCall& call, bool sends) const {
    return sends ? call.channels.tiles - (count_ - known_) : known_ - count_;
  }
  /// All threads of a warp know the same. The other side is at most a ring behind a sender, and not
  /// behind a receiver.
  __device__ __forceinline__ void ask(const PairCall& call, int peer, bool sends,
                                      std::uint32_t channel) {
    const std::uint64_t at = sends ? kTilesTakenAt : kTilesComeAt;
    const std::uint32_t least = sends ? count_ - call.channels.tiles : count_;
    // acquire: pairs with the fence of tell(): a tile is read, or written again, after that
    const auto told =
        static_cast<std::uint32_t>(load_acquired(word<Tiles>(call, at, call.rank, peer, channel)));
    known_ = least + __reduce_min_sync(~0U, told - least);
  }

  std::uint32_t count_ = 0;  // tiles that went through the ring, on this side
  std::uint32_t known_ = 0;  // on the other side
  std::uint32_t at_ = 0;     // of the ring
};

/// Packs of a user's buffer that fill tiles, the last perhaps in part.
struct BulkPart {
  std::uint64_t first;
  std::uint64_t end;

  __device__ __forceinline__ std::uint32_t tiles() const {
    return static_cast<std::uint32_t>((end - first + kBulkTile - 1) / kBulkTile);
  }
  /// Of its i-th tile.
  __device__ __forceinline__ std::uint64_t at(std::uint32_t i) const {
    return first + std::uint64_t{i} * kBulkTile;
  }
  __device__ __forceinline__ std::uint32_t bytes(std::uint32_t i) const {
    const std::uint64_t packs = end - at(i);
    return static_cast<std::uint32_t>((packs < kBulkTile ? packs : kBulkTile) * sizeof(Pack));
  }
};

/// Whether messages of a call may go in bulk, and how.
enum class InBulk { none, by_threads, staged };

struct NoStaging {};

/// A side of a channel, as far as tiles go. A warp's, as is the staging that it is given.
template <InBulk kBulk>
class BulkSide {
 public:
  using Memory = std::conditional_t<kBulk == InBulk::staged, Staging, NoStaging>;

  __device__ __forceinline__ void begin(const PairCall& call, int peer, bool sends,
                                        std::uint32_t channel) {
    peer_ = peer;
    sends_ = sends;
    channel_ = channel;
    tiles_.begin(call, peer, sends, channel);
  }
  __device__ __forceinline__ void keep(const PairCall& call) const {
    tiles_.keep(call, peer_, sends_, channel_);
  }

  /// By a sender: whether, as far as it knows, all that it sent is taken.
  __device__ __forceinline__ bool is_empty() const { return tiles_.is_empty(); }
  __device__ __forceinline__ bool is_empty(const PairCall& call) {
    return tiles_.is_empty(call, peer_, channel_);
  }

  /// Some of a buffer's `rest` packs from `first` on: how many, 0 where it has to wait.
  __device__ __forceinline__ std::uint32_t move(const PairCall& call, Memory& memory,
                                                const UserBuffer& buffer, std::uint64_t first,
                                                std::uint64_t rest) {
    std::uint32_t tiles = call.tiles_at_once;
    if (rest < tiles * kBulkTile) {
      tiles = (static_cast<std::uint32_t>(rest) + kBulkTile - 1) / kBulkTile;
    }
    tiles = tiles_.ready(call, peer_, sends_, channel_, tiles);
    if (tiles == 0) {
      tell_of_put(call);
      return 0;
    }
    const std::uint32_t most = tiles * kBulkTile;
    const std::uint32_t packs = rest < most ? static_cast<std::uint32_t>(rest) : most;
    const BulkPart part{first, first + packs};
    if constexpr (kBulk == InBulk::staged) {
      if (buffer.is_plain(part.end - 1)) {
        move_staged(call, memory, buffer, part);
        return packs;
      }
    }
    tell_of_put(call);
    move_in_threads(call, buffer, part);
    tiles_.go_on(call, tiles);
    tiles_.tell(call, peer_, sends_, channel_);
    return packs;
  }

  /// Before it waits: what is on its way is told of when it is there.
  __device__ __forceinline__ void tell_of_put(const PairCall& call) {
    if (kBulk != InBulk::staged || !put_) return;
    put_ = false;
    if (threadIdx.x % 32 == 0) await_copies_out();
    tiles_.tell(call, peer_, sends_, channel_);
  }

 private:
  __device__ __forceinline__ Pack* in_ring(const PairCall& call, std::uint32_t i) const {
    return tiles_.next(call, sends_ ? peer_ : call.rank, sends_ ? call.rank : peer_, channel_, i);
  }
  __device__ __forceinline__ void move_in_threads(const PairCall& call, const UserBuffer& buffer,
                                                  const BulkPart& part) const {
    for (std::uint32_t i = 0; i < part.tiles(); ++i) {
      const std::uint64_t end = part.at(i) + part.bytes(i) / sizeof(Pack);
      if (sends_) {
        move_by_threads<true>(in_ring(call, i), buffer, part.at(i), end);
      } else {
        move_by_threads<false>(in_ring(call, i), buffer, part.at(i), end);
      }
    }
  }
  /// What is sent, or goes to the user, is on its way then; what is sent is told of later.
  __device__ __forceinline__ void move_staged(const PairCall& call, Staging& staging,
                                              const UserBuffer& buffer, const BulkPart& part) {
    const auto place = [&](std::uint32_t i, bool in_user) {
      return in_user ? const_cast<Pack*>(buffer.place(part.at(i))) : in_ring(call, i);
    };
    constexpr std::uint32_t kBytes = kBulkTile * sizeof(Pack);
    const bool does_it = threadIdx.x % 32 == 0;
    if (does_it) {
      // A sender needs none: what it writes over was read before it was told so, and it asks for
      // the copy after that. One more took a tenth of the time.
      if (!sends_) show_to_copies();
      staging.expect(static_cast<std::uint32_t>((part.end - part.first) * sizeof(Pack)));
      for (std::uint32_t i = 0; i < part.tiles(); ++i) {
        staging.fetch(i * kBytes, place(i, sends_), part.bytes(i));
      }
    }
    tell_of_put(call);
    if (does_it) {
      staging.await();
      for (std::uint32_t i = 0; i < part.tiles(); ++i) {
        staging.put(place(i, !sends_), i * kBytes, part.bytes(i));
      }
      close_copies_out();
    }
    __syncwarp();
    tiles_.go_on(call, part.tiles());
    if (sends_) {
      put_ = true;
    } else if (does_it) {
      tiles_.tell_fetched(call, peer_, channel_);
    }
  }

  int peer_;
  bool sends_;
  bool put_ = false;  // tiles, of which the peer has not been told
  std::uint32_t channel_;
  TileRing tiles_;
};

/// Nothing goes so.
template <>
class BulkSide<InBulk::none> {
 public:
  using Memory = NoStaging;

  __device__ __forceinline__ void begin(const PairCall&, int, bool, std::uint32_t) {}
  __device__ __forceinline__ void keep(const PairCall&) const {}
  __device__ __forceinline__ static constexpr bool is_empty() { return true; }
};

}  // namespace gdrx::gpu
