// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "collectives/kernels/call.hpp"
#include "collectives/kernels/host_sum.hpp"

namespace gdrx::gpu {

/// Enqueues; waits for nobody, so that it always ends.
cudaError_t launch_combine(const HostSum& sum, const Guard& guard, cudaStream_t stream);

}  // namespace gdrx::gpu
