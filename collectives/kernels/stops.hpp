// SPDX-License-Identifier: Apache-2.0
// Kernels that tell the network what lies ready, and wait for it.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>

#include "collectives/kernels/copy.hpp"
#include "collectives/kernels/shape.hpp"
#include "gdrx/types.hpp"

namespace gdrx::gpu {

/// Enqueues one FlagStep. Of `call` the rank's arena and report are used.
cudaError_t launch_flags(const Call& call, const FlagStep& step, Flags* flags, cudaStream_t stream);

/// Of a relay of one rank: how many bytes at a time are copied.
inline std::uint64_t word_of_relay(const Call& call, const Relay& what) {
  return std::min(word_of_copy(what.part, call.input), word_of_copy(call.output, what.part));
}

/// Whether one block has done it in about the time of a kernel's launch. Of several ranks: the same
/// on all, and a thread has no more than its packs of one tile.
inline bool is_small_relay(const Call& call, const Relay& what) {
  constexpr std::uint64_t kMostWords = 4 << 10;
  constexpr std::uint64_t kMostThreads = kThreads / 2;
  if (call.ranks == 1) return call.bytes <= kMostWords * word_of_relay(call, what);
  return packs_of(call.block) <=
         kMostThreads * static_cast<std::uint64_t>(unroll_of_blocks(call.ranks));
}

/// Enqueues a Relay that is small. Of `call` the input, output and bytes are the vector's, `block`
/// as of Kernel::reduce_scatter. `crowded`: what waits for the kernel ahead takes another's room.
cudaError_t launch_relay(const Call& call, const Relay& what, Flags* flags, bool crowded,
                         cudaStream_t stream);

}  // namespace gdrx::gpu
