// SPDX-License-Identifier: Apache-2.0
// What a warp of a kernel of messages does: its channels by turns, and while they wait for others
// its share of what the rank sends to itself.
#pragma once

#include "collectives/kernels/pair.cuh"
#include "collectives/kernels/pair_relay.cuh"

namespace gdrx::gpu {

/// What a rank sends to itself: a warp's share of it, in pieces of what its staging holds.
class OwnPieces {
 public:
  /// `warp` of `warps` that share it.
  __device__ __forceinline__ void begin(const PairCall& call, std::uint32_t warp,
                                        std::uint32_t warps) {
    copy_ = call.first_copy;
    width_ = call.tiles_at_once * kBulkTile;
    first_ = std::uint64_t{warp} * width_;
    begin_ = first_;
    step_ = std::uint64_t{warps} * width_;
  }

  /// False: none is left.
  __device__ __forceinline__ bool copy(const PairCall& call, Staging& staging) {
    for (; copy_ != call.end_copy; ++copy_, first_ = begin_) {
      const Message& what = message_of(call, copy_);
      const std::uint64_t packs = packs_of(what.bytes);
      if (reinterpret_cast<std::uint64_t>(what.at) == what.word || first_ >= packs) continue;
      copy_piece(what, packs - first_ < width_ ? packs - first_ : width_, staging);
      first_ += step_;
      return true;
    }
    return false;
  }

 private:
  __device__ __forceinline__ void copy_piece(const Message& what, std::uint64_t packs,
                                             Staging& staging) const {
    const UserBuffer from(what.at, what.bytes);
    const UserBuffer to(reinterpret_cast<void*>(what.word), what.bytes);
    const std::uint64_t last = first_ + packs - 1;
    if (from.is_plain(last) && to.is_plain(last)) {
      if (threadIdx.x % 32 == 0) {
        const auto bytes = static_cast<std::uint32_t>(packs * sizeof(Pack));
        staging.expect(bytes);
        staging.fetch(0, from.place(first_), bytes);
        staging.await();
        staging.put(const_cast<Pack*>(to.place(first_)), 0, bytes);
        close_copies_out();
      }
      __syncwarp();
      return;
    }
    const std::uint64_t at = first_ * sizeof(Pack);
    const std::uint64_t rest = what.bytes - at, most = packs * sizeof(Pack);
    copy_bytes(reinterpret_cast<std::uint8_t*>(what.word) + at, what.at + at,
               rest < most ? rest : most, threadIdx.x % 32, 32);
  }

  std::uint32_t copy_;   // among the messages
  std::uint32_t width_;  // packs of a piece
  std::uint64_t first_;  // of the next piece
  std::uint64_t begin_;  // of a copy's first
  std::uint64_t step_;
};

/// A warp's channels.
template <int kTurns, InBulk kBulk, class AnyRelay = NoRelay>
class Carrier {
 public:
  using AnyCall = typename AnyRelay::AnyCall;
  /// Of a collective: all goes in bulk, and some may be passed on.
  static constexpr bool kRelays = !std::is_same_v<AnyRelay, NoRelay>;
  using Lane = Channel<kBulk, !kRelays>;

  /// Reads, and changes nothing. `warps`: of a block, that carry.
  __device__ __forceinline__ Carrier(const AnyCall& call, std::uint32_t warps)
      : call_(call), warps_(warps) {
    std::uint32_t warp = threadIdx.x / 32 * gridDim.x + blockIdx.x;
    if constexpr (kBulk == InBulk::staged) {
      memory_.begin(call.tiles_at_once * kBulkTile * sizeof(Pack));
      own_.begin(call, warp, warps * gridDim.x);
    }
    if constexpr (kTurns == 1) {
      const std::uint32_t task = task_of(call);
      if (task < call.tasks) begin(task);
    } else if constexpr (kRelays) {
      if (warp < call.relays) relay_.begin(call, warp);
      // Who relays has channels last.
      warp = warp < call.relays ? warp + warps * gridDim.x - call.relays : warp - call.relays;
      begin_all(warp, warps * gridDim.x, call.paired);
    } else {
      begin_all(warp, warps * gridDim.x, 0);
    }
  }

  /// All of it, or as much as comes before its waits end: what it received is void then.
  __device__ __forceinline__ void carry() {
    const bool whole = run();
    if (kBulk == InBulk::staged) {
      await_copies_out();  // before the block's memory is another's
    } else if (whole) {
      copy_own(call_, 32 * warps_);
    }
  }

 private:
  __device__ __forceinline__ bool run() {
    WaitGuard guard(call_);
    while (true) {
      bool moved = false;
      int waits = -1;
      if constexpr (kRelays) {
        if (!relay_.done()) {
          moved = relay_.step(call_, memory_);
          if (!moved) waits = kTurns;
        }
      }
#pragma unroll 1
      for (int i = 0; i < kTurns; ++i) {
        if (i >= count_ || channels_[i].done()) continue;
        if (channels_[i].step(call_, memory_, guard, most_of(i))) {
          moved = true;
        } else {
          waits = i;
        }
      }
      if (moved) {
        guard.arrived();
      } else if (waits < 0) {
        break;
      } else if (!all_of_warp(goes_on(guard, waits))) {
        return false;
      } else {
        copy_own_piece();
      }
    }
#pragma unroll 1
    for (int i = 0; i < kTurns; ++i) {
      if (i < count_) channels_[i].keep(call_);
    }
    if constexpr (kRelays) relay_.keep(call_);
    while (copy_own_piece()) {
    }
    return true;
  }

  /// A block has tasks that follow each other, so it mostly sends or mostly receives: the fences of
  /// who receives would wait for all that the block's senders have on their way to a peer.
  static __device__ __forceinline__ std::uint32_t task_of(const PairCall& call) {
    const std::uint32_t task = blockIdx.x * call.tasks / gridDim.x + threadIdx.x / 32;
    return task < (blockIdx.x + 1) * call.tasks / gridDim.x ? task : call.tasks;
  }
  __device__ __forceinline__ void begin(std::uint32_t task) {
    channels_[count_].begin(call_, task);
    ++count_;
  }
  /// `paired`: so many tasks send what as many others, behind them, receive at the same places. One
  /// warp has both.
  __device__ __forceinline__ void begin_all(std::uint32_t warp, std::uint32_t warps,
                                            std::uint32_t paired) {
    for (std::uint32_t unit = warp; count_ < kTurns; unit += warps) {
      const std::uint32_t task = paired == 0 || unit < paired ? unit : 2 * unit;
      if (task >= call_.tasks) break;
      begin(task);
      if (paired == 0) continue;
      if (unit < paired) paired_ = count_ + 1;
      const std::uint32_t other = unit < paired ? unit + paired : task + 1;
      if (other < call_.tasks) begin(other);
    }
  }
  /// Who gives and gets at the same places reads before it writes.
  __device__ __forceinline__ std::uint64_t most_of(int i) const {
    if (kTurns == 1 || i % 2 == 0 || i >= paired_) return kAllPacks;
    return channels_[i - 1].given();
  }
  __device__ __forceinline__ bool copy_own_piece() {
    if constexpr (kBulk == InBulk::staged) {
      return own_.copy(call_, memory_);
    } else {
      return false;
    }
  }
  // One thread's clock is enough.
  __device__ __forceinline__ bool goes_on(WaitGuard& guard, int waits) const {
    if (threadIdx.x % 32 != 0) return !guard.expired();
    if constexpr (kRelays) {
      if (waits == kTurns)
        return guard.keep_waiting(relay_.peer(), relay_.stage(), relay_.number());
    }
    const Lane& channel = channels_[kTurns == 1 ? 0 : waits];
    return guard.keep_waiting(channel.peer(), channel.stage(), channel.number());
  }

  const AnyCall& call_;
  std::uint32_t warps_;  // of a block, that carry
  int count_ = 0;
  int paired_ = 0;
  typename Lane::Memory memory_;
  std::conditional_t<kBulk == InBulk::staged, OwnPieces, NoStaging> own_;
  Lane channels_[kTurns];
  AnyRelay relay_;
};

/// Of a communicator that is gone nothing is done, as of one that gave up: peers must not take for
/// data what a kernel ahead of this one did not receive.
template <int kTurns, InBulk kBulk>
__global__ void __launch_bounds__(kPairWarps * 32, kBulk == InBulk::staged ? 1 : 2)
    send_receive(const __grid_constant__ PairCall call) {
  const volatile Control* const control = control_of(call, call.rank);
  const std::uint32_t owner = control->owner;
  const std::uint32_t aborted = control->aborted;
  Carrier<kTurns, kBulk> carrier(call, blockDim.x / 32);  // what it reads comes with these two
  if (!all_of_warp(is_of(owner, call.owner) && aborted == 0)) return;
  carrier.carry();
}

}  // namespace gdrx::gpu
