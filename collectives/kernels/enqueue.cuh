// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collectives/kernels/device.cuh"

#ifndef GDRX_DEVICE_HEADER

#include <cuda_runtime_api.h>

#include "collectives/kernels/shape.hpp"

namespace gdrx::gpu {

/// A light kernel may be set up before the one ahead of it ends: see begin().
template <class AnyCall, class... Parameters, class... Arguments>
cudaError_t enqueue(void (*kernel)(AnyCall, Parameters...), const Shape& shape, cudaStream_t stream,
                    const AnyCall& call, const Arguments&... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = is_light(shape, call.ranks) ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, call, arguments...);
}

/// A kernel of no call: its threads wait for nobody.
template <class... Parameters, class... Arguments>
cudaError_t enqueue_alone(void (*kernel)(Parameters...), int blocks, int threads,
                          cudaStream_t stream, const Arguments&... arguments) {
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, stream>>>(
      arguments...);
  return cudaGetLastError();
}

}  // namespace gdrx::gpu

#endif
