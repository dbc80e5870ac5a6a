// SPDX-License-Identifier: Apache-2.0
// Launch of one element type's kernels; each .cu file made from kernels.cu.in instantiates one.
#pragma once

#include "collectives/kernels/blocks.cuh"
#include "collectives/kernels/direct.cuh"
#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/launch.hpp"
#include "collectives/kernels/one_shot.cuh"
#include "collectives/kernels/one_shot_tiled.cuh"
#include "collectives/kernels/reduction.cuh"
#include "collectives/kernels/ring.cuh"
#include "collectives/kernels/tree.cuh"
#include "collectives/kernels/two_shot.cuh"

namespace gdrx::gpu {

template <class E, Share kShare>
cudaError_t enqueue_one_shot(const Call& call, const Shape& shape, cudaStream_t stream) {
  if (call.ranks <= 2) return enqueue(one_shot<E, 1, kShare>, shape, stream, call);
  if (call.ranks <= 4) return enqueue(one_shot<E, 3, kShare>, shape, stream, call);
  if (call.ranks <= 8) return enqueue(one_shot<E, 7, kShare>, shape, stream, call);
  if constexpr (std::is_same_v<E, Any>) {
    return enqueue(one_shot<E, kMaxRanks - 1, Share::any>, shape, stream, call);
  } else {
    return cudaErrorInvalidValue;  // see is_hot()
  }
}

template <class E>
cudaError_t launch_one_shot(const Call& call, const Shape& shape, cudaStream_t stream) {
  if (call.before + call.behind > 0) return enqueue_one_shot<E, Share::any>(call, shape, stream);
  const auto places = reinterpret_cast<std::uintptr_t>(call.input) |
                      reinterpret_cast<std::uintptr_t>(call.output) | call.bytes;
  const auto threads = static_cast<std::uint64_t>(shape.blocks) * shape.threads;
  if (places % sizeof(Pack) == 0 && packs_of(call.bytes) <= threads) {
    return enqueue_one_shot<E, Share::pack>(call, shape, stream);
  }
  if (places % 4 == 0 && call.bytes < sizeof(Pack)) {
    return enqueue_one_shot<E, Share::words>(call, shape, stream);
  }
  return enqueue_one_shot<E, Share::any>(call, shape, stream);
}

template <bool kTiled, class E, int kUnroll, int kPeers>
cudaError_t enqueue_two_shot(const Call& call, const Shape& shape, cudaStream_t stream) {
  if constexpr (kTiled) {
    return enqueue(two_shot_tiled<E, kUnroll, kPeers>, shape, stream, call);
  } else {
    return enqueue(two_shot<E, kUnroll, kPeers>, shape, stream, call);
  }
}

// At most eight packs in flight a thread, but for Any's.
template <bool kTiled, class E>
cudaError_t launch_two_shot(const Call& call, const Shape& shape, cudaStream_t stream) {
  if (call.ranks > 4) return enqueue_two_shot<kTiled, E, 1, kManyPeers<E>>(call, shape, stream);
  if (call.ranks > 2) {
    if (shape.unroll == 2) return enqueue_two_shot<kTiled, E, 2, 3>(call, shape, stream);
    return enqueue_two_shot<kTiled, E, 1, 3>(call, shape, stream);
  }
  if (shape.unroll == 4) return enqueue_two_shot<kTiled, E, 4, 1>(call, shape, stream);
  if (shape.unroll == 2) return enqueue_two_shot<kTiled, E, 2, 1>(call, shape, stream);
  return enqueue_two_shot<kTiled, E, 1, 1>(call, shape, stream);
}

template <class E>
cudaError_t launch_reduce_scatter(const Call& call, const Shape& shape, cudaStream_t stream) {
  if (call.ranks <= 2) return enqueue(reduce_scatter<E, 4, 1>, shape, stream, call, shape.whole);
  if (call.ranks <= 4) return enqueue(reduce_scatter<E, 2, 3>, shape, stream, call, shape.whole);
  return enqueue(reduce_scatter<E, 1, kManyPeers<E>>, shape, stream, call, shape.whole);
}

template <class E>
cudaError_t launch_direct(const DirectCall& call, const Shape& shape, cudaStream_t stream) {
  if (call.ranks <= 2) return enqueue(direct<E, 4, 1>, shape, stream, call);
  if (call.ranks <= 4) return enqueue(direct<E, 2, 3>, shape, stream, call);
  return enqueue(direct<E, 1, kManyPeers<E>>, shape, stream, call);
}

template <class E>
cudaError_t launch_one_shot_tiled(const Call& call, Shape shape, cudaStream_t stream) {
  shape.threads += 32;  // the warp that tells of room
  if (shape.unroll == 1) return enqueue(one_shot_tiled<E, 1>, shape, stream, call);
  return enqueue(one_shot_tiled<E, 2>, shape, stream, call);
}

/// The shape fits(): see shape.hpp. For Kernel::direct the call is a DirectCall.
template <class E>
cudaError_t launch(const Call& call, const Shape& shape, cudaStream_t stream) {
  switch (shape.kernel) {
    case Kernel::one_shot:
      if (shape.tiled) return launch_one_shot_tiled<E>(call, shape, stream);
      return launch_one_shot<E>(call, shape, stream);
    case Kernel::two_shot:
      if (shape.whole) return launch_two_shot<true, E>(call, shape, stream);
      return launch_two_shot<false, E>(call, shape, stream);
    case Kernel::ring:
      if (shape.unroll == 1) return enqueue(ring<E, 1>, shape, stream, call);
      if (shape.unroll == 2) return enqueue(ring<E, 2>, shape, stream, call);
      if (shape.unroll == 4) return enqueue(ring<E, 4>, shape, stream, call);
      break;
    case Kernel::tree:
      if (shape.unroll == 1) return enqueue(tree<E, 1>, shape, stream, call);
      if (shape.unroll == 2) return enqueue(tree<E, 2>, shape, stream, call);
      break;
    case Kernel::reduce_scatter:
      return launch_reduce_scatter<E>(call, shape, stream);
    case Kernel::all_gather:
      return launch_all_gather(call, shape, stream);
    case Kernel::direct:
      return launch_direct<E>(static_cast<const DirectCall&>(call), shape, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace gdrx::gpu
