// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "collectives/kernels/shape.hpp"

namespace gdrx::gpu {

/// The next kernel of the stream may be set up before this one ends: see begin().
template <class... Parameters, class... Arguments>
cudaError_t enqueue(void (*kernel)(Parameters...), const Shape& shape, cudaStream_t stream,
                    const Arguments&... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace gdrx::gpu
