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

/// `kRanks`: how many ranks' packs a thread waits for at once, so that their latencies overlap.
template <int kUnroll, int kRanks>
struct Batch {
  static_assert(kUnroll * kRanks <= 32);
  Pack packs[kUnroll][kRanks];
  std::uint32_t wanted = 0;  // a bit a pack

  static constexpr std::uint32_t bit(int i, int r) { return 1U << (i * kRanks + r); }

  /// Packs that `wants(rank, i)` of the ranks [first, first + kRanks), from `place(i)` of their
  /// lanes. This rank has none.
  template <class Place, class Wants>
  __device__ __forceinline__ void receive(const Call& call, const Lanes& lanes, int first,
                                          Place place, Wants wants, Patience& patience,
                                          Stage stage) {
    std::uint8_t* arena = call.arena[call.rank];
    const auto slot = [&](int i, int r) { return lanes.slot(call.rank, first + r, place(i)); };
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
#pragma unroll
      for (int r = 0; r < kRanks; ++r) {
        const int peer = first + r;
        if (peer < call.ranks && peer != call.rank && wants(peer, i)) wanted |= bit(i, r);
      }
    }
    for (std::uint32_t missing = wanted; missing != 0;) {
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
#pragma unroll
        for (int r = 0; r < kRanks; ++r) {
          if ((missing & bit(i, r)) != 0) packs[i][r] = load_shared(slot_of(arena, slot(i, r)));
        }
      }
      const std::uint32_t looked = missing;
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
#pragma unroll
        for (int r = 0; r < kRanks; ++r) {
          if ((looked & bit(i, r)) != 0 && !is_sentinel(packs[i][r])) missing &= ~bit(i, r);
        }
      }
      if (missing == 0) break;
      const int next = __ffs(static_cast<int>(missing)) - 1;
      if (!patience.more(first + next % kRanks, stage, place(next / kRanks))) break;
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
#pragma unroll
      for (int r = 0; r < kRanks; ++r) {
        if ((wanted & bit(i, r)) != 0) packs[i][r] = take(arena, slot(i, r), packs[i][r]);
      }
    }
  }
};

/// The packs of all ranks reduced in the order of ranks, `mine` for this rank's: the same bits on
/// every rank, and in every kernel that reduces so. Written over `mine`.
template <class E, int kUnroll, int kRanks, class Place, class Wants>
__device__ __forceinline__ void reduce_all(const Call& call, Pack (&mine)[kUnroll],
                                           const Lanes& lanes, Place place, Wants wants,
                                           Patience& patience) {
  Accumulators<E> sums[kUnroll];
  for (int first = 0; first < call.ranks; first += kRanks) {
    Batch<kUnroll, kRanks> batch;
    batch.receive(
        call, lanes, first, place, [&](int, int i) { return wants(i); }, patience, Stage::reducing);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (!wants(i)) continue;
#pragma unroll
      for (int r = 0; r < kRanks; ++r) {
        const int rank = first + r;
        if (rank >= call.ranks) break;
        const Pack pack = rank == call.rank ? mine[i] : batch.packs[i][r];
        if (rank == 0) {
          sums[i].set(pack);
        } else {
          sums[i].add(pack, call.op);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    if (wants(i)) mine[i] = sums[i].finish(call.finish_over);
  }
}

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
