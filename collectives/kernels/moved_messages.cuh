// SPDX-License-Identifier: Apache-2.0
// A collective whose runs all go as messages: it is entered as every collective, and carried as a
// group of messages. Of slots it has those of messages alone.
#pragma once

#include "collectives/kernels/moved_messages.hpp"
#include "collectives/kernels/pair_carrier.cuh"

namespace gdrx::gpu {

/// By a warp, a peer a thread: that each has entered this call, and gives what this rank expects.
__device__ __forceinline__ void hear_all(const MovedMessages& call, const Entry& entry,
                                         WaitGuard& guard) {
  const auto peer = static_cast<int>(threadIdx.x % 32);
  bool heard = peer >= call.ranks || peer == call.rank;
  while (!all_of_warp(heard)) {
    if (heard) continue;
    const Pack expected = entered_of(call, entry.calls + 1, call.gets[peer]);
    const Control* control = control_of(call, call.rank);
    const Pack theirs = load_shared(&control->entered[entry.calls % 2][peer]);
    if (entered_before(theirs.low, expected.low)) {
      heard = !guard.keep_waiting(peer, Stage::entering, 0);
      continue;
    }
    heard = true;
    // Who has given up goes on to later calls.
    if (!of_one_number(theirs.low, expected.low)) continue;
    if (theirs.low != expected.low || theirs.high != expected.high) {
      guard.fail(peer, expected, theirs);
    }
  }
}

/// False: of a communicator that is gone or gave up, nothing is done.
__device__ __forceinline__ bool goes_on(const Call& call) {
  const volatile Control* const control = control_of(call, call.rank);
  return is_of(control->owner, call.owner) && control->aborted == 0;
}

/// Where the call is entered here, a block's last warp, behind the `warps` that carry, carries
/// nothing; the first block's hears the peers. False: this warp has no more to do.
__device__ __forceinline__ bool enter_if_alone(const MovedMessages& call, std::uint32_t warps) {
  if (call.enters != 0) {
    WaitGuard guard(call);
    const Announcement announcement(call);
    const std::uint64_t gives =
        threadIdx.x < static_cast<unsigned>(call.ranks) ? call.gives[threadIdx.x] : 0;
    const Entry entry =
        entry_barrier(call, control_of(call, call.rank), false, guard, announcement, gives);
    advance_epoch(call, entry, false);
    if (threadIdx.x / 32 == warps) {
      if (blockIdx.x == 0) hear_all(call, entry, guard);
      return false;
    }
  }
  return true;
}

template <InBulk kBulk>
__global__ void __launch_bounds__((kPairWarps + 1) * 32, kBulk == InBulk::staged ? 1 : 2)
    move_messages(const __grid_constant__ MovedMessages call) {
  const std::uint32_t warps = blockDim.x / 32 - call.enters;
  if (!enter_if_alone(call, warps)) return;
  if (!all_of_warp(goes_on(call))) return;
  Carrier<kPairTurns, kBulk, PairRelay<kBulk>> carrier(call, warps);
  carrier.carry();
}

}  // namespace gdrx::gpu
