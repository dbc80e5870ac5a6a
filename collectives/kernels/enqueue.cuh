// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collectives/kernels/device.cuh"

#ifndef GDRX_DEVICE_HEADER

#include <cuda_runtime_api.h>

#include "collectives/kernels/shape.hpp"

namespace gdrx::gpu {

/// `early`: it may be set up before the one ahead of it ends, and begins by awaiting that; such a
/// launch takes the host 0.6 us less, too.
template <class... Parameters, class... Arguments>
cudaError_t enqueue_grid(void (*kernel)(Parameters...), int blocks, int threads, bool early,
                         cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchAttribute serialization{};
  serialization.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  serialization.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  config.attrs = &serialization;
  config.numAttrs = early ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/// See begin().
template <class AnyCall, class... Parameters, class... Arguments>
cudaError_t enqueue(void (*kernel)(AnyCall, Parameters...), const Shape& shape, cudaStream_t stream,
                    const AnyCall& call, const Arguments&... arguments) {
  const bool early = shape.early && is_light(shape, call.ranks);
  return enqueue_grid(kernel, shape.blocks, shape.threads, early, stream, call, arguments...);
}

/// Whether its blocks may have so much memory of the kind that staged.cuh is about, on this GPU.
/// All of the kernel's launches have the same.
template <class... Parameters>
bool has_room_for(void (*kernel)(Parameters...), int bytes) {
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) ==
      cudaSuccess) {
    return true;
  }
  (void)cudaGetLastError();  // is said once
  return false;
}
/// Of a kernel whose launches have unequal sizes. CUDA holds the bound of a kernel, not of a
/// launch: threads that launch it at the same time all set the most that a block may have.
template <class... Parameters>
bool has_room_for_any(void (*kernel)(Parameters...), int bytes) {
  int device = 0, most = 0;
  cudaFuncAttributes own{};
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
          cudaSuccess ||
      cudaFuncGetAttributes(&own, kernel) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  most -= static_cast<int>(own.sharedSizeBytes);
  return bytes <= most && has_room_for(kernel, most);
}
template <class... Parameters, class... Arguments>
cudaError_t enqueue_staged(void (*kernel)(Parameters...), int blocks, int threads, int bytes,
                           cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/// Behind all that is ahead of it in the stream.
template <class... Parameters, class... Arguments>
cudaError_t enqueue_alone(void (*kernel)(Parameters...), int blocks, int threads,
                          cudaStream_t stream, const Arguments&... arguments) {
  return enqueue_staged(kernel, blocks, threads, 0, stream, arguments...);
}

}  // namespace gdrx::gpu

#endif
