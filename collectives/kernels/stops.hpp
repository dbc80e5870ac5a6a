// SPDX-License-Identifier: Apache-2.0
// Kernels that tell the network what lies ready, and wait for it.
#pragma once

#include <cuda_runtime_api.h>

#include "collectives/kernels/call.hpp"
#include "collectives/kernels/copy.hpp"
#include "collectives/kernels/flags.hpp"

namespace gdrx::gpu {

/// Enqueues one FlagStep. Of `call` the rank's arena, report and timeout are used.
cudaError_t launch_flags(const Call& call, const FlagStep& step, Flags* flags, cudaStream_t stream);

/// Of how many bytes at a time a relay copies.
inline std::uint64_t word_of_relay(const Relay& what) {
  const std::uint64_t in = word_of_copy(what.part, what.input);
  const std::uint64_t out = word_of_copy(what.output, what.part);
  return in < out ? in : out;
}

/// Whether one block copies it in about the time of a kernel's launch.
inline bool is_small_relay(const Relay& what) {
  constexpr std::uint64_t kMostWords = 4 << 10;
  return what.bytes <= kMostWords * word_of_relay(what);
}

/// Enqueues a Relay that is small. Of `call` as launch_flags().
cudaError_t launch_relay(const Call& call, const Relay& what, Flags* flags, cudaStream_t stream);

}  // namespace gdrx::gpu
