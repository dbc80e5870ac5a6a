// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "collectives/kernels/call.hpp"
#include "collectives/kernels/scaling.hpp"

namespace gdrx::gpu {

/// Enqueues, over at most `most` blocks; waits for nobody, so that it always ends.
cudaError_t launch_scale(const Scaling& what, int most, const Guard& guard, cudaStream_t stream);

}  // namespace gdrx::gpu
