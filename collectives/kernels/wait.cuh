// SPDX-License-Identifier: Apache-2.0
// Waiting for a peer: bounded by a deadline and by the host's abort word. And how a kernel enters
// a call.
#pragma once

#include <cstdint>

#include "collectives/kernels/pack.cuh"

namespace gdrx::gpu {

__device__ __forceinline__ Control* control_of(const Call& call, int rank) {
  return reinterpret_cast<Control*>(call.arena[rank]);
}

/// What a rank tells its peers when it enters a call.
__device__ __forceinline__ Pack entered_of(const Call& call, std::uint32_t number,
                                           std::uint64_t bytes) {
  return {call.signature | (number & ((1U << kNumberBits) - 1)), bytes};
}
__device__ __forceinline__ bool of_one_number(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint16_t>(a) == static_cast<std::uint16_t>(b);
}
/// Whether what a peer entered is of a call before that number.
__device__ __forceinline__ bool entered_before(std::uint64_t word, std::uint64_t number) {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(word) -
                                   static_cast<std::uint16_t>(number)) < 0;
}

/// One a thread. After a thread gave up, no wait of it waits: the kernel ends, its output is void.
/// It also sends nothing any more: peers must not take for data what it did not receive.
/// No slow path is handed a pointer to it: it stays in registers.
class WaitGuard {
 public:
  __device__ explicit WaitGuard(const Call& call) : call_(call) {}

  /// False: stop waiting. `peer` is waited for.
  __device__ __forceinline__ bool keep_waiting(int peer, Stage stage, std::uint32_t slot) {
    if (!expired_ && ++polls_ % kPollsBetweenLooks == 0) {
      since_ = look(call_, since_, peer, stage, slot);
      expired_ = since_ == kOver;
    }
    return !expired_;
  }

  /// As keep_waiting(), with no deadline.
  __device__ __forceinline__ bool keep_waiting_without_end(int peer) {
    since_ = 0;
    return keep_waiting(peer, Stage::entering, 0);
  }

  __device__ __forceinline__ bool expired() const { return expired_; }
  __device__ __forceinline__ void give_up() { expired_ = true; }

  /// The call cannot be carried out: `peer` entered another one. Ends this kernel's waits, and so,
  /// by the host, those of its peers.
  __device__ __forceinline__ void fail(int peer, Pack mine, Pack theirs) {
    expired_ = true;
    disagree(call_, peer, mine, theirs);
  }

  /// What was waited for has come. Polls of a long kernel must not add up: when all threads look at
  /// the same time they keep each other, and their peers, waiting for it.
  __device__ __forceinline__ void arrived() {
    if (polls_ >= kPollsBetweenLooks) since_ = 0;
    polls_ = 0;
  }

 private:
  static constexpr int kTickShift = 17;  // 131 us
  static constexpr std::uint64_t kOver = ~std::uint64_t{0};

  static __device__ void report(const Call& call, int peer, Stage stage, std::uint32_t slot,
                                Pack mine = {}, Pack theirs = {}) {
    Control* control = control_of(call, call.rank);
    if (atomicExch(&control->failed, 1) != 0) return;
    volatile Report* report = call.report;
    report->peer = static_cast<std::uint32_t>(peer);
    report->call = control->calls;
    report->stage = static_cast<std::uint32_t>(stage);
    report->slot = slot;
    report->timeout_ms = static_cast<std::uint32_t>(call.timeout_ns / 1'000'000);
    report->mine.low = mine.low;
    report->mine.high = mine.high;
    report->theirs.low = theirs.low;
    report->theirs.high = theirs.high;
    fence_system();  // pairs with the host's acquire: the report is whole
    store_shared(&call.report->failed, 1U);
    report->abort = 1;
  }

  static __device__ __noinline__ void disagree(const Call& call, int peer, Pack mine, Pack theirs) {
    report(call, peer, Stage::disagreeing, 0, mine, theirs);
    reinterpret_cast<volatile Control*>(control_of(call, call.rank))->aborted = 1;
  }

  /// Who waits in vain may do so because a peer is in another call of the same number. Asked once a
  /// tick; this rank's own words are of its last two calls.
  static __device__ bool find_disagreement(const Call& call) {
    const Control* control = control_of(call, call.rank);
    for (const auto& entered : control->entered) {
      const Pack mine = load_shared(&entered[call.rank]);
      for (int peer = 0; peer < call.ranks; ++peer) {
        const Pack theirs = load_shared(&entered[peer]);
        if (!of_one_number(mine.low, theirs.low) || mine.low == theirs.low) continue;
        disagree(call, peer, mine, theirs);
        return true;
      }
    }
    return false;
  }

  /// So that the host need not wait for the deadline to name them: it is told of each rank that has
  /// not entered the last call of this one, or else of `peer`. Words are read by halves, as here
  /// registers are what the kernels that wait have to save.
  static __device__ void tell(const Call& call, std::uint64_t word, int peer) {
    volatile Report* report = call.report;
    report->doing.low = call.signature;
    report->doing.high = call.bytes;
    const volatile std::uint64_t* low = &control_of(call, call.rank)->entered[0][0].low;
    for (int half = 0; half < 2; ++half, low += 2 * kMaxRanks) {
      const std::uint64_t mine = low[2 * call.rank];
      for (int other = 0; other < call.ranks; ++other) {
        if (!entered_before(low[2 * other], mine)) continue;
        report->waits[other] = word;
        peer = -1;
      }
    }
    if (peer >= 0) report->waits[peer] = word;
  }

  /// Whom a wait for `peer` is really for: a rank that has not entered the last call of this one
  /// keeps the others waiting for each other.
  static __device__ int late(const Call& call, int peer) {
    const auto& entered = control_of(call, call.rank)->entered;
    const Pack even = load_shared(&entered[0][call.rank]);
    const Pack odd = load_shared(&entered[1][call.rank]);
    const int last = entered_before(even.low, odd.low) ? 1 : 0;
    const std::uint64_t mine = last == 1 ? odd.low : even.low;
    if (entered_before(load_shared(&entered[last][peer]).low, mine)) return peer;
    for (int other = 0; other < call.ranks; ++other) {
      if (entered_before(load_shared(&entered[last][other]).low, mine)) return other;
    }
    return peer;
  }

  /// Since when it is waited; 0: from now on. kOver: no longer.
  static __device__ __noinline__ std::uint64_t look(const Call& call, std::uint64_t since, int peer,
                                                    Stage stage, std::uint32_t slot) {
    Control* control = control_of(call, call.rank);
    volatile Control* shared = control;
    if (shared->aborted != 0) return kOver;
    const std::uint64_t now = nanoseconds();
    if (since == 0) since = now;
    volatile Report* report = call.report;
    if (call.timeout_ns > 0 && now - since > call.timeout_ns) {
      const int other = late(call, peer);
      if (other != peer) stage = Stage::entering;
      WaitGuard::report(call, other, stage, slot);
    } else {
      // The report is in the host's memory, far away: one thread a tick asks, for all.
      const auto tick = static_cast<std::uint32_t>(now >> kTickShift);
      const std::uint32_t last = shared->looked;
      if (tick == last || atomicCAS(&control->looked, last, tick) != last) return since;
      if (report->abort == 0 && !find_disagreement(call)) {
        const std::uint64_t word = told_of(tick, stage, now - since);
        if (word != 0) tell(call, word, peer);
        return since;
      }
    }
    shared->aborted = 1;
    return kOver;
  }

  const Call& call_;
  std::uint64_t since_ = 0;  // the first look of this wait
  std::uint32_t polls_ = 0;
  bool expired_ = false;
};

/// A light kernel lets the next one of the stream be set up while it runs, if that one is light
/// too; it waits here for this one's end. One, not all that follow: blocks that wait take the room
/// of other communicators' kernels.
/// A tiny one lets more than the next in.
template <bool kLight>
__device__ __forceinline__ void begin() {
#if __CUDA_ARCH__ >= 900
  if (!kLight) return;
  const bool tiny = is_tiny(blocks_of_call() * blockDim.x);
  if (tiny) let_next_start();
  await_last();
  if (!tiny) let_next_start();
#endif
}

/// As a light kernel that is not tiny: a block that waits for this one's end is all that is added.
__device__ __forceinline__ void begin_relay() {
#if __CUDA_ARCH__ >= 900
  await_last();
  let_next_start();
#endif
}

/// Of the lower halves of two numbers that wrap around.
__device__ __forceinline__ bool before(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b)) <
         0;
}

/// This block's words in a rank's arena: of each peer the call whose block of this number is done.
__device__ __forceinline__ std::uint32_t* left_of(const Call& call, int rank) {
  return reinterpret_cast<std::uint32_t*>(call.arena[rank] + kLeftAt) + block_of_call() * kMaxRanks;
}

/// How a rank tells its peers what it enters: a store a peer, by a thread of its own of the first
/// block, waited for by none. Where it goes is known before the call begins.
class Announcement {
 public:
  __device__ __forceinline__ explicit Announcement(const Call& call)
      : wanted_(worked_out(
            block_of_call() == 0 && threadIdx.x < static_cast<unsigned>(call.ranks) ? 1U : 0U)),
        to_(worked_out(&control_of(call, wanted_ != 0 ? static_cast<int>(threadIdx.x) : call.rank)
                            ->entered[0][call.rank])) {}

  __device__ __forceinline__ void make(std::uint32_t calls, Pack words) const {
    store_shared_if(wanted_, to_ + calls % 2 * kMaxRanks, words);
  }

 private:
  std::uint32_t wanted_;
  Pack* to_;
};

/// What a call learns when it enters.
struct Entry {
  std::uint32_t calls;
  std::uint32_t half;  // the first slot that the call may use
};

/// Calls alternate between the halves of the slots. A peer may be one call ahead, writing the other
/// half, and no more: it needs what this rank sends in that call. Kernels that use all slots, and
/// those after them, first wait until every rank is in this call, and so has left the one before.
/// What the ranks must agree on travels with that. Every thread calls it. After a kernel that gave
/// up all that follow do: a peer may be in that one's call yet, two behind. Where the
/// communicator is gone the kernel ends here, and has done nothing: that comes with the word that
/// says whether the ranks meet. `control`: this rank's. `bytes`: what each thread tells the peer of
/// its number beside the signature.
__device__ __forceinline__ Entry entry_barrier(const Call& call, Control* control, bool whole,
                                               WaitGuard& guard, const Announcement& announcement,
                                               std::uint64_t bytes) {
  const auto state = *reinterpret_cast<const volatile unsigned long long*>(control);
  const auto calls = static_cast<std::uint32_t>(state);
  const auto owner = static_cast<std::uint32_t>(state >> 32);
  const bool aborted = reinterpret_cast<const volatile Control*>(control)->aborted != 0;
  if (aborted) guard.give_up();
  const int peer = static_cast<int>(threadIdx.x);
  const Pack mine = entered_of(call, calls + 1, bytes);
  if (__builtin_expect(!whole && owner == call.owner, 1)) {
    announcement.make(calls, mine);
  } else {
    if (!is_of(owner, call.owner)) end_thread();
    // What this rank gives, and the call before, are behind it for who reads what is announced.
    if (block_of_call() == 0 && peer < call.ranks) fence_system();
    announcement.make(calls, mine);
    if (peer < call.ranks && peer != call.rank) {
      Pack seen;
      do {
        seen = load_shared(&control->entered[calls % 2][peer]);
      } while (entered_before(seen.low, calls + 1) && guard.keep_waiting(peer, Stage::entering, 0));
      if (of_one_number(seen.low, mine.low) && seen.low != mine.low) {
        guard.fail(peer, mine, seen);
      }
      guard.arrived();
      fence_system();  // pairs with the peer's: what it gives is read after its word
    }
    if (__syncthreads_or(guard.expired()) != 0) guard.give_up();
  }
  return {calls, whole ? 0 : calls % 2 * (kSlots / 2)};
}

__device__ __forceinline__ Entry entry_barrier(const Call& call, Control* control, bool whole,
                                               WaitGuard& guard, const Announcement& announcement) {
  return entry_barrier(call, control, whole, guard, announcement, call.bytes);
}

/// The same of a call whose control and announcement nobody needs before.
__device__ __forceinline__ Entry entry_barrier(const Call& call, bool whole, WaitGuard& guard) {
  return entry_barrier(call, control_of(call, call.rank), whole, guard, Announcement(call));
}

/// Every block of this number, of all ranks, has come here: what they wrote is there, and what they
/// read may be written. Every thread calls it.
__device__ __forceinline__ void exit_barrier(const Call& call, const Entry& entry,
                                             WaitGuard& guard) {
  __syncthreads();
  const int peer = static_cast<int>(threadIdx.x);
  if (peer >= call.ranks || peer == call.rank) return;
  const std::uint32_t done = entry.calls + 1;
  fence_system();  // what the block wrote and read, was before the peer sees the word
  store_shared(left_of(call, peer) + call.rank, done);
  while (before(load_shared(left_of(call, call.rank) + peer), done) &&
         guard.keep_waiting(peer, Stage::leaving, block_of_call())) {
  }
  fence_system();  // pairs with the peer's: what follows is after what it wrote and read
}

/// The last block to come here opens the next call: every block has read what it changes. Early in
/// a kernel, in the shadow of the first wait. Every thread calls it.
__device__ __forceinline__ void advance_epoch(const Call& call, const Entry& entry, bool whole) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  Control* control = control_of(call, call.rank);
  if (atomicAdd(&control->arrivals, 1) != blocks_of_call() - 1) return;
  control->arrivals = 0;
  *reinterpret_cast<volatile unsigned long long*>(control) =
      static_cast<unsigned long long>(call.owner | (whole ? 1U : 0U)) << 32 | (entry.calls + 1);
}

/// Orders everything that the block did before everything that it does after, for all GPUs. One
/// fence a block: a fence a warp is many times dearer.
__device__ __forceinline__ void block_fence() {
  __syncthreads();
  if (threadIdx.x == 0) fence_system();
  __syncthreads();
}

}  // namespace gdrx::gpu
