// SPDX-License-Identifier: Apache-2.0
// Launch of one element type's kernels; each .cu file made from kernels.cu.in instantiates one.
#pragma once

#include "collectives/kernels/launch.hpp"
#include "collectives/kernels/one_shot.cuh"
#include "collectives/kernels/ring.cuh"
#include "collectives/kernels/two_shot.cuh"

namespace gdrx::gpu {

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

template <class E>
cudaError_t launch_one_shot(const Call& call, const Shape& shape, cudaStream_t stream) {
  if (call.ranks <= 2) return enqueue(one_shot<E, 2>, shape, stream, call);
  if (call.ranks <= 4) return enqueue(one_shot<E, 4>, shape, stream, call);
  return enqueue(one_shot<E, 8>, shape, stream, call);
}

template <class E, int kUnroll, int kRanks>
cudaError_t launch_two_shot(const Call& call, const Shape& shape, cudaStream_t stream) {
  if (shape.whole) return enqueue(two_shot_tiled<E, kUnroll, kRanks>, shape, stream, call);
  return enqueue(two_shot<E, kUnroll, kRanks>, shape, stream, call);
}

/// A thread has at most eight packs in flight: unroll * ranks.
template <class E>
cudaError_t launch(const Call& call, const Shape& shape, cudaStream_t stream) {
  switch (shape.kernel) {
    case Kernel::one_shot:
      return launch_one_shot<E>(call, shape, stream);
    case Kernel::two_shot:
      if (call.ranks <= 2 && shape.unroll == 4) {
        return launch_two_shot<E, 4, 2>(call, shape, stream);
      }
      if (call.ranks <= 2 && shape.unroll == 2) {
        return launch_two_shot<E, 2, 2>(call, shape, stream);
      }
      if (call.ranks <= 4 && shape.unroll == 2) {
        return launch_two_shot<E, 2, 4>(call, shape, stream);
      }
      if (shape.unroll == 1) return launch_two_shot<E, 1, 8>(call, shape, stream);
      break;
    case Kernel::ring:
      if (shape.unroll == 1) return enqueue(ring<E, 1>, shape, stream, call);
      if (shape.unroll == 2) return enqueue(ring<E, 2>, shape, stream, call);
      if (shape.unroll == 4) return enqueue(ring<E, 4>, shape, stream, call);
      break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace gdrx::gpu
