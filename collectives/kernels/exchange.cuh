// SPDX-License-Identifier: Apache-2.0
// The two moves that every kernel is made of: packs to all peers, and packs from each of them.
#pragma once

#include "collectives/kernels/reduction.cuh"
#include "collectives/kernels/wait.cuh"

namespace gdrx::gpu {

/// The peers from the nearest rank above on, so that no two ranks begin with the same one: `step`
/// from 1 to ranks - 1. This rank itself is step 0.
__device__ __forceinline__ int rank_above(const Call& call, int step) {
  const int rank = call.rank + step;
  return rank < call.ranks ? rank : rank - call.ranks;
}

/// Which lane of an arena's owner a peer writes; the owner has none of its own.
__device__ __forceinline__ std::uint32_t lane_of(int owner, int source) {
  return static_cast<std::uint32_t>(source < owner ? source : source - 1);
}

/// Into this rank's lane of every peer, `lane` slots a rank, `at` in the first of them.
__device__ __forceinline__ void send_all(const Call& call, std::uint32_t lane, std::uint32_t at,
                                         Pack pack) {
  for (int step = 1; step < call.ranks; ++step) {
    const int to = rank_above(call, step);
    send(call.arena[to], at + lane_of(to, call.rank) * lane, pack);
  }
}

/// Where the sums go: of a rank that wants a part of the vector, that; of one that wants none,
/// none.
class Sums {
 public:
  __device__ __forceinline__ explicit Sums(const Call& call)
      : call_(call), data_(static_cast<std::uint8_t*>(call.output) - call.before) {
    const std::uint64_t packs = end() / sizeof(Pack);
    const bool aligned = reinterpret_cast<std::uintptr_t>(data_) % sizeof(Pack) == 0;
    whole_ = aligned && packs > call.first ? packs - call.first : 0;
  }
  /// Of the whole vector, aligned.
  __device__ __forceinline__ Pack* place(std::uint64_t pack) const {
    return reinterpret_cast<Pack*>(data_) + pack;
  }
  __device__ __forceinline__ void store(std::uint64_t pack, Pack value) const {
    if (pack - call_.first < whole_) {
      *place(pack) = value;
    } else {
      store_rest(data_, call_.before, end(), pack * sizeof(Pack), value);
    }
  }

 private:
  __device__ __forceinline__ std::uint64_t end() const { return call_.bytes - call_.behind; }
  const Call& call_;
  std::uint8_t* data_;   // where the vector's first byte would be
  std::uint64_t whole_;  // packs of 16 bytes at addresses of theirs
};

/// A thread's slots in its own arena: `first` of the first peer's first pack, `lane` slots from
/// peer to peer, `step` from pack to pack.
struct Places {
  std::uint32_t first;
  std::uint32_t lane;
  std::uint32_t step;
};

/// The same in the arenas of its peers, in the order of rank_above(). Known before a call begins.
template <int kPeers>
class Peers {
 public:
  /// `lane` slots a rank, this thread's are from `thread` on.
  __device__ __forceinline__ Peers(const Call& call, std::uint32_t lane, std::uint32_t thread)
      : call_(call) {
#pragma unroll
    for (int step = 0; step < kPeers; ++step) {
      if (!has(step)) break;
      const int to = rank_of(step);
      arenas_[step] = call.arena[to];
      slots_[step] = lane_of(to, call.rank) * lane + thread;
    }
  }
  __device__ __forceinline__ bool has(int step) const { return step < call_.ranks - 1; }
  __device__ __forceinline__ int rank_of(int step) const { return rank_above(call_, 1 + step); }
  /// `offset`: of the block of lanes, and of the pack.
  __device__ __forceinline__ void send(int step, std::uint32_t offset, Pack pack) const {
    gpu::send(arenas_[step], slots_[step] + offset, pack);
  }
  __device__ __forceinline__ void send_all(std::uint32_t offset, Pack pack) const {
#pragma unroll
    for (int step = 0; step < kPeers; ++step) {
      if (has(step)) send(step, offset, pack);
    }
  }

 private:
  const Call& call_;
  std::uint8_t* arenas_[kPeers];
  std::uint32_t slots_[kPeers];
};

/// Nothing is watched.
struct Unwatched {
  __device__ __forceinline__ void look() const {}
};

/// Whether the next rank entered the call that this one did: if each finds that, all did. Looked at
/// beside the data that is waited for, so that it costs no latency of its own: a peer's word was on
/// its way before its data. One thread of a rank is enough: the others want nothing.
class Watch {
 public:
  __device__ __forceinline__ Watch(const Call& call, const Entry& entry, bool wanted)
      : call_(call),
        calls_(entry.calls),
        wanted_(wanted ? 1 : 0),
        word_(&word_of(call, entry.calls)->low) {}

  __device__ __forceinline__ void look() { seen_ = load_shared_if(wanted_, word_); }
  /// After the last look. Waits for the word if it did not come with the data.
  __device__ __forceinline__ void settle(WaitGuard& guard) const {
    if (wanted_ == 0 || __builtin_expect(seen_ == mine(call_, calls_).low, 1)) return;
    if (!is_same(call_, calls_)) guard.give_up();
  }

 private:
  __device__ __forceinline__ static Pack mine(const Call& call, std::uint32_t calls) {
    return entered_of(call, calls + 1, call.bytes);
  }
  __device__ __forceinline__ static const Pack* word_of(const Call& call, std::uint32_t calls) {
    return &control_of(call, call.rank)->entered[calls % 2][rank_above(call, 1)];
  }
  __device__ __noinline__ static bool is_same(const Call& call, std::uint32_t calls) {
    WaitGuard guard(call);
    const int peer = rank_above(call, 1);
    const Pack expected = mine(call, calls);
    Pack theirs = load_shared(word_of(call, calls));
    while (entered_before(theirs.low, expected.low)) {
      if (!guard.keep_waiting(peer, Stage::entering, 0)) return false;
      theirs = load_shared(word_of(call, calls));
    }
    if (!of_one_number(theirs.low, expected.low) || theirs.low == expected.low) return true;
    guard.fail(peer, expected, theirs);
    return false;
  }

  const Call& call_;
  std::uint32_t calls_;
  std::uint32_t wanted_;
  const std::uint64_t* word_;
  std::uint64_t seen_ = 0;
};

/// What a thread waits for at once, so that latencies overlap: `kUnroll` packs of each of up to
/// `kPeers` peers, the ranks without this one in their order.
template <int kUnroll, int kPeers>
struct Batch {
  Pack packs[kUnroll][kPeers];

  /// Of a mask of packs: bit `bit(i, peer)`.
  static constexpr std::uint32_t bit(int i, int peer) { return 1U << (i * kPeers + peer); }

  /// The packs that `wants(rank, i)`.
  template <class Wants>
  static __device__ __forceinline__ std::uint32_t mask(const Call& call, Wants wants) {
    std::uint32_t wanted = 0;
    each_of(call, [&](int i, int peer) {
      if (wants(rank_of(call, peer), i)) wanted |= bit(i, peer);
    });
    return wanted;
  }

  /// Those of the mask; others stay as they are. clear() has to follow.
  template <class Watching>
  __device__ __forceinline__ void receive(const Call& call, const Places& at, std::uint32_t wanted,
                                          WaitGuard& guard, Stage stage, Watching& watch) {
    std::uint8_t* arena = call.arena[call.rank];
    while (true) {
      each(wanted, [&](int i, int peer) {
        packs[i][peer] = load_shared(slot_of(arena, slot(at, i, peer)));
      });
      watch.look();
      bool suspicious = false;  // of being empty, or rare data
      each(wanted, [&](int i, int peer) { suspicious |= packs[i][peer].low == kSentinelLow; });
      if (!suspicious) break;
      int missing = -1;
      each(wanted, [&](int i, int peer) {
        if (is_sentinel(packs[i][peer])) missing = peer;
      });
      if (missing >= 0 && guard.keep_waiting(rank_of(call, missing), stage, at.first)) continue;
      each(wanted, [&](int i, int peer) {
        if (packs[i][peer].low != kSentinelLow) return;
        packs[i][peer] = receive_rare(arena, slot(at, i, peer), packs[i][peer]);
      });
      break;
    }
    guard.arrived();
  }
  __device__ __forceinline__ void receive(const Call& call, const Places& at, std::uint32_t wanted,
                                          WaitGuard& guard, Stage stage) {
    const Unwatched nothing;
    receive(call, at, wanted, guard, stage, nothing);
  }

  /// The slots are empty again. After what the peers wait for has been sent.
  __device__ __forceinline__ void clear(const Call& call, const Places& at,
                                        std::uint32_t wanted) const {
    std::uint8_t* arena = call.arena[call.rank];
    each(wanted, [&](int i, int peer) {
      store_shared(slot_of(arena, slot(at, i, peer)), {kSentinelLow, kSentinelHigh});
    });
  }

  /// Which rank the peer is.
  static __device__ __forceinline__ int rank_of(const Call& call, int peer) {
    return peer < call.rank ? peer : peer + 1;
  }

  /// The i-th pack of all ranks, in their order, `mine` this rank's: the same bits on every rank,
  /// and in every kernel that reduces so.
  template <class E>
  __device__ __forceinline__ Pack reduce(const Call& call, int i, Pack mine) const {
    const Reduction how{call.type, call.op, call.finish_over};
    return reduce_packs<E, kPeers + 1>(how, call.ranks, [&](int rank) {
      if (rank == call.rank) return mine;
      return rank < call.rank ? packs[i][rank % kPeers] : packs[i][rank == 0 ? 0 : rank - 1];
    });
  }

  /// visit(i, peer) for every pack that there is.
  template <class Visit>
  static __device__ __forceinline__ void each_of(const Call& call, Visit visit) {
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
#pragma unroll
      for (int peer = 0; peer < kPeers; ++peer) {
        if (peer < call.ranks - 1) visit(i, peer);
      }
    }
  }

  /// visit(i, peer) for the packs of a mask.
  template <class Visit>
  static __device__ __forceinline__ void each(std::uint32_t wanted, Visit visit) {
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
#pragma unroll
      for (int peer = 0; peer < kPeers; ++peer) {
        if ((wanted & bit(i, peer)) != 0) visit(i, peer);
      }
    }
  }

 private:
  static __device__ __forceinline__ std::uint32_t slot(const Places& at, int i, int peer) {
    return at.first + static_cast<std::uint32_t>(peer) * at.lane +
           static_cast<std::uint32_t>(i) * at.step;
  }
};

}  // namespace gdrx::gpu
