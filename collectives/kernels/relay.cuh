// SPDX-License-Identifier: Apache-2.0
// All of a small call between hosts as one kernel. Of one block: that all of it has written is
// known without other blocks, and so without waits for some that may have no room. Of any type: the
// network takes longer than an addition.
#pragma once

#include "collectives/kernels/blocks.cuh"
#include "collectives/kernels/combine.cuh"
#include "collectives/kernels/copy.cuh"
#include "collectives/kernels/flags.cuh"

namespace gdrx::gpu {

/// While the network has the part, from when it lies there until its sum does. False: this kernel
/// gave up. Every thread calls it; behind the first one's acquires, what the network wrote is there
/// for all of them.
__device__ __forceinline__ bool pass(const Relay& what, Stop& stop, WaitGuard& guard) {
  if (__syncthreads_or(guard.expired()) != 0) return false;
  stop.signal(bit_of(Signal::scattered), {});
  if (what.sum.hosts > 0) {
    stop.wait(WaitFlag::add, guard);
    if (__syncthreads_or(guard.expired()) != 0) return false;
    Combine<Any>::run(what.sum, threadIdx.x, blockDim.x);
    __syncthreads();
    stop.signal(bit_of(Signal::added), {});
  }
  stop.wait(WaitFlag::gather, guard);
  return __syncthreads_or(guard.expired()) == 0;
}

/// Of the only rank of a host.
inline __global__ void __launch_bounds__(kThreads, 2)
    relay_alone(const __grid_constant__ Call call, const __grid_constant__ Relay what,
                Flags* flags) {
  begin_relay();
  Stop stop(call, flags);
  if (__syncthreads_or(stop.is_void()) != 0) return;
  stop.signal(bit_of(Signal::begun), what.record);  // meanwhile the network gets ready
  WaitGuard guard(call);
  // The first thread has that to do: it is the last to get something to copy.
  const unsigned thread = threadIdx.x == 0 ? blockDim.x - 1 : threadIdx.x - 1;
  copy_bytes(what.part, call.input, call.bytes, thread, blockDim.x);
  if (!pass(what, stop, guard)) return;
  copy_bytes(call.output, what.part, call.bytes, thread, blockDim.x);
  __syncthreads();
  stop.signal(bit_of(Signal::gathered), {});
}

/// Of several: two calls, of which each has its half of the slots. The fence between them is that
/// of the first thing that is told after the slots were emptied.
template <int kUnroll, int kPeers>
__global__ void __launch_bounds__(kThreads / 2, 2)
    relay_blocks(const __grid_constant__ Call call, const __grid_constant__ Relay what,
                 Flags* flags) {
  begin_relay();
  Stop stop(call, flags);
  WaitGuard guard(call);
  scatter_blocks<Any, kUnroll, kPeers>(call, what.part, false, guard, [&] {
    if (!guard.expired()) stop.signal(bit_of(Signal::begun), what.record);
  });
  if (!pass(what, stop, guard)) return;
  gather_blocks<kUnroll, kPeers>(call, what.part, false, guard);
  if (__syncthreads_or(guard.expired()) == 0) stop.signal(bit_of(Signal::gathered), {});
}

}  // namespace gdrx::gpu
