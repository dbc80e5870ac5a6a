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

}  // namespace gdrx::gpu

#endif
