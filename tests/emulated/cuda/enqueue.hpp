// SPDX-License-Identifier: Apache-2.0
// What kernels need of the emulated CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace gdrx::emulated {

using Work = std::function<void()>;

/// Behind what the stream has, or into its capture.
cudaError_t enqueue(cudaStream_t stream, Work work);

}  // namespace gdrx::emulated
