// SPDX-License-Identifier: Apache-2.0
// The GPU's side of the counters that it shares with the thread that drives its network. One thread
// of a kernel uses them.
#pragma once

#include "collectives/kernels/flags.hpp"
#include "collectives/kernels/wait.cuh"

namespace gdrx::gpu {

/// Whether a kernel of this rank gave up. Those after it tell nothing: the network would take for
/// data what was not received.
__device__ __forceinline__ bool gave_up(const Call& call) {
  return reinterpret_cast<const volatile Control*>(control_of(call, call.rank))->aborted != 0;
}

/// What this GPU has told and taken. Read once, all at the same time: each crosses the bus.
struct Counts {
  std::uint64_t told[kTold];
  std::uint64_t taken[kAllowed];
};

__device__ __forceinline__ Counts counts_of(const Flags* flags) {
  Counts counts;
#pragma unroll
  for (int i = 0; i < kTold; ++i) counts.told[i] = flags->told[i];
#pragma unroll
  for (int i = 0; i < kAllowed; ++i) counts.taken[i] = flags->taken[i];
  return counts;
}

/// What was done before is there for who hears of it. `what`: bit_of() each Told.
__device__ __forceinline__ void tell(Flags* flags, Counts& counts, std::uint32_t what,
                                     const CallRecord& record) {
  if ((what & bit_of(Told::begun)) != 0) flags->record = record;
  fence_system();
#pragma unroll
  for (int i = 0; i < kTold; ++i) {
    if ((what >> i & 1) != 0) store_shared(flags->told + i, ++counts.told[i]);
  }
}

/// Without a deadline: whoever allows it has one, and ends this by an abort.
__device__ __forceinline__ void await(const Call& call, Flags* flags, const Counts& counts,
                                      Allowed what, Patience& patience) {
  const auto at = static_cast<int>(what);
  const std::uint64_t wanted = (what == Allowed::add ? counts.taken[0] : counts.taken[1]) + 1;
  while (load_acquired(flags->allowed + at) < wanted &&
         patience.more(call.rank, Stage::entering, 0)) {
  }
  flags->taken[at] = wanted;
}

}  // namespace gdrx::gpu
