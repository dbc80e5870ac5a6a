// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "collectives/kernels/call.hpp"

namespace gdrx::gpu {

/// Of how many bytes at a time a copy is: 16, 4 or 1, by the addresses.
inline std::uint64_t word_of_copy(const void* to, const void* from) {
  const auto both = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  return both % 16 == 0 ? 16 : both % 4 == 0 ? 4 : 1;
}

/// Whether a kernel should copy: the copy engine takes some 14 us to begin in a graph. To 256 KiB
/// in words of 16 bytes that was measured (results/gpu/gpu-copies-on-1.txt), in others as many
/// words.
inline bool is_small_copy(const void* to, const void* from, std::uint64_t bytes) {
  constexpr std::uint64_t kMostWords = 16 << 10;
  return bytes <= kMostWords * word_of_copy(to, from);
}

/// Enqueues a copy of memory that the GPU reaches. Waits for nobody, so that it always ends.
cudaError_t launch_copy(void* to, const void* from, std::uint64_t bytes, const Guard& guard,
                        cudaStream_t stream);

}  // namespace gdrx::gpu
