// SPDX-License-Identifier: Apache-2.0
// The GPU's side of the counters that it shares with the thread that drives its network.
#pragma once

#include "collectives/kernels/wait.cuh"

namespace gdrx::gpu {

/// A block's. Every thread has one and may call it; the first one acts.
class Stop {
 public:
  /// The counts are loaded at once, long before the first is needed.
  __device__ __forceinline__ Stop(const Call& call, Flags* flags)
      : call_(call), flags_(flags), own_(&control_of(call, call.rank)->counts) {
    if (first()) counts_ = *own_;
  }

  /// Whether a kernel of this rank gave up. Those after it tell nothing: the network would take for
  /// data what was not received. Or the communicator is gone, and with it the flags.
  __device__ __forceinline__ bool is_void() const {
    if (!first()) return false;
    const volatile Control* const own = control_of(call_, call_.rank);
    const std::uint32_t owner = own->owner;
    return own->aborted != 0 || !is_of(owner, call_.owner);
  }

  /// What the first thread saw done before is there for who hears of it. `what`: bit_of() each
  /// Signal.
  __device__ __forceinline__ void signal(std::uint32_t what, const CallRecord& record) {
    if (!first()) return;
    if ((what & bit_of(Signal::begun)) != 0) flags_->record = record;
    fence_system();  // pairs with the host's acquire: a release for all that is told below
#pragma unroll
    for (int i = 0; i < kSignals; ++i) {
      if ((what >> i & 1) == 0) continue;
      store_shared(flags_->signals + i, ++counts_.signals[i]);
      own_->signals[i] = counts_.signals[i];
    }
  }

  /// Without a deadline: whoever allows it has one, and ends this by an abort.
  __device__ __forceinline__ void wait(WaitFlag what, WaitGuard& guard) {
    if (!first()) return;
    const auto at = static_cast<int>(what);
    const std::uint64_t wanted = (what == WaitFlag::add ? counts_.taken[0] : counts_.taken[1]) + 1;
    // acquire: pairs with the host's release, so that what the network has written is seen
    while (load_acquired(flags_->wait_flags + at) < wanted &&
           guard.keep_waiting_without_end(call_.rank)) {
    }
    guard.arrived();
    own_->taken[at] = wanted;
  }

 private:
  __device__ __forceinline__ static bool first() { return threadIdx.x == 0; }

  const Call& call_;
  Flags* flags_;
  Counts* own_;
  Counts counts_;
};

}  // namespace gdrx::gpu
