// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gdrx::gpu {

/// To this many bytes a kernel copies sooner than the copy engine, which takes some 14 us to begin
/// in a graph (results/gpu-copies-on-1.txt).
inline constexpr std::uint64_t kMostCopied = 256 << 10;

/// Enqueues a copy of memory that the GPU reaches. Waits for nobody, so that it always ends.
cudaError_t launch_copy(void* to, const void* from, std::uint64_t bytes, cudaStream_t stream);

}  // namespace gdrx::gpu
