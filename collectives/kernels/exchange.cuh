// SPDX-License-Identifier: Apache-2.0
// The two moves that every kernel is made of: packs to all peers, and packs from each of them.
#pragma once

#include "collectives/kernels/element.cuh"
#include "collectives/kernels/wait.cuh"

namespace gdrx::gpu {

/// A block of slots in an arena: `lane` of them for each peer of the arena's owner.
struct Lanes {
  std::uint32_t begin;
  std::uint32_t lane;
  /// The owner has no lane of its own.
  __device__ __forceinline__ std::uint32_t slot(int owner, int source, std::uint32_t at) const {
    const int index = source < owner ? source : source - 1;
    return begin + static_cast<std::uint32_t>(index) * lane + at;
  }
};

/// What a thread waits for at once, so that latencies overlap: `kUnroll` packs of each of up to
/// `kPeers` peers, the ranks without this one in their order.
template <int kUnroll, int kPeers>
struct Batch {
  Pack packs[kUnroll][kPeers];

  /// From `place(i)` of the lanes of the peers that `wants(peer, i)`; others stay as they are.
  template <class Place, class Wants>
  __device__ __forceinline__ void receive(const Call& call, const Lanes& lanes, Place place,
                                          Wants wants, Patience& patience, Stage stage) {
    std::uint8_t* arena = call.arena[call.rank];
    const auto slot = [&](int peer, int i) {
      return lanes.begin + static_cast<std::uint32_t>(peer) * lanes.lane + place(i);
    };
    const auto wanted = [&](int peer, int i) {
      return peer < call.ranks - 1 && wants(rank_of(call, peer), i);
    };
    while (true) {
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
#pragma unroll
        for (int peer = 0; peer < kPeers; ++peer) {
          if (wanted(peer, i)) packs[i][peer] = load_shared(slot_of(arena, slot(peer, i)));
        }
      }
      int missing = -1;
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
#pragma unroll
        for (int peer = 0; peer < kPeers; ++peer) {
          if (wanted(peer, i) && is_sentinel(packs[i][peer])) missing = peer;
        }
      }
      if (missing < 0 || !patience.more(rank_of(call, missing), stage, place(0))) break;
    }
    patience.arrived();
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
#pragma unroll
      for (int peer = 0; peer < kPeers; ++peer) {
        if (wanted(peer, i)) packs[i][peer] = take(arena, slot(peer, i), packs[i][peer]);
      }
    }
  }

  /// Which rank the peer is.
  static __device__ __forceinline__ int rank_of(const Call& call, int peer) {
    return peer < call.rank ? peer : peer + 1;
  }

  /// The i-th pack of all ranks, in their order, `mine` this rank's: the same bits on every rank,
  /// and in every kernel that reduces so.
  template <class E>
  __device__ __forceinline__ Pack reduce(const Call& call, int i, Pack mine) const {
    return with_operator(call.op, [&](auto op) {
      Accumulators<E> sum;
      sum.set(call.rank == 0 ? mine : packs[i][0]);
#pragma unroll
      for (int rank = 1; rank <= kPeers; ++rank) {
        if (rank >= call.ranks) break;
        const Pack theirs = rank < call.rank ? packs[i][rank % kPeers] : packs[i][rank - 1];
        sum.template add<decltype(op)>(rank == call.rank ? mine : theirs);
      }
      return sum.finish(call.finish_over);
    });
  }
};

/// Into this rank's lane of every peer. The nearest above first, so that no two ranks begin with
/// the same peer.
__device__ __forceinline__ void send_all(const Call& call, const Lanes& lanes, std::uint32_t at,
                                         Pack pack) {
  for (int i = 1; i < call.ranks; ++i) {
    const int to = call.rank + i < call.ranks ? call.rank + i : call.rank + i - call.ranks;
    send(call.arena[to], lanes.slot(to, call.rank, at), pack);
  }
}

}  // namespace gdrx::gpu
