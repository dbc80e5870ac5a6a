// SPDX-License-Identifier: Apache-2.0
// The messages of a call, wherever they lie, and those of a rank to itself.
#pragma once

#include "collectives/kernels/copy.cuh"
#include "collectives/kernels/pairs.hpp"

namespace gdrx::gpu {

__device__ __forceinline__ bool all_of_warp(bool mine) {
  return __reduce_min_sync(~0U, mine ? 1U : 0U) != 0;
}

/// Of those of a call, wherever they lie.
__device__ __forceinline__ const Message& message_of(const PairCall& call, std::uint32_t i) {
  if (call.in_arena == 0) return call.messages[i];
  return reinterpret_cast<const Message*>(call.arena[call.rank] + kMessagesAt)[i];
}

/// What a rank sends to itself, by so many threads of each block.
__device__ __forceinline__ void copy_own(const PairCall& call, std::uint32_t threads) {
  for (std::uint32_t i = call.first_copy; i < call.end_copy; ++i) {
    const Message& copy = message_of(call, i);
    if (reinterpret_cast<std::uint64_t>(copy.at) == copy.word) continue;
    copy_bytes(reinterpret_cast<void*>(copy.word), copy.at, copy.bytes,
               blockIdx.x * threads + threadIdx.x, gridDim.x * threads);
  }
}

}  // namespace gdrx::gpu
