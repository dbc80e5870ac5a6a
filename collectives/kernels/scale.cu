// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/scale.hpp"

#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/guard.cuh"
#include "collectives/kernels/loadable.hpp"
#include "collectives/kernels/reduction.cuh"

namespace gdrx::gpu {
namespace {

template <class E>
struct alignas(sizeof(Pack)) Several {
  static constexpr int kCount = sizeof(Pack) / sizeof(typename E::Stored);
  typename E::Stored at[kCount];
};

/// What thread `first` of `threads` multiplies, all of them the whole: packs where both addresses
/// allow it, and elements behind them.
template <class E>
__device__ __forceinline__ void scale_all(const Scaling& what, std::uint64_t first,
                                          std::uint64_t threads) {
  using Stored = typename E::Stored;
  const auto* const from = static_cast<const Stored*>(what.from);
  auto* const to = static_cast<Stored*>(what.to);
  const void* const at = what.factor != nullptr ? what.factor : what.own;
  const auto factor = E::load(*static_cast<const Stored*>(at));
  const auto product = [factor](Stored value) {
    return E::store(Prod::apply(E::load(value), factor));
  };
  const auto both = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  const std::uint64_t packs = both % sizeof(Pack) == 0 ? what.count / Several<E>::kCount : 0;
  for (std::uint64_t i = first; i < packs; i += threads) {
    Several<E> values = reinterpret_cast<const Several<E>*>(from)[i];
#pragma unroll
    for (int k = 0; k < Several<E>::kCount; ++k) values.at[k] = product(values.at[k]);
    reinterpret_cast<Several<E>*>(to)[i] = values;
  }
  for (std::uint64_t i = packs * Several<E>::kCount + first; i < what.count; i += threads) {
    to[i] = product(from[i]);
  }
}

__global__ void __launch_bounds__(kBlock)
    scale(const __grid_constant__ Scaling what, const __grid_constant__ Guard guard) {
  if (is_closed(guard)) return;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * kBlock + threadIdx.x;
  const std::uint64_t threads = std::uint64_t{gridDim.x} * kBlock;
  switch (what.type) {
    case DataType::int8:
      return scale_all<Plain<std::int8_t>>(what, first, threads);
    case DataType::uint8:
      return scale_all<Plain<std::uint8_t>>(what, first, threads);
    case DataType::int32:
      return scale_all<Plain<std::int32_t>>(what, first, threads);
    case DataType::uint32:
      return scale_all<Plain<std::uint32_t>>(what, first, threads);
    case DataType::int64:
      return scale_all<Plain<std::int64_t>>(what, first, threads);
    case DataType::uint64:
      return scale_all<Plain<std::uint64_t>>(what, first, threads);
    case DataType::float16:
      return scale_all<Half>(what, first, threads);
    case DataType::bfloat16:
      return scale_all<Bfloat16>(what, first, threads);
    case DataType::float32:
      return scale_all<Float>(what, first, threads);
    case DataType::float64:
      return scale_all<Plain<double>>(what, first, threads);
    case DataType::float8_e4m3:
      return scale_all<E4m3>(what, first, threads);
    default:
      return scale_all<E5m2>(what, first, threads);
  }
}

const Loadable kLoadableScale(scale);

}  // namespace

cudaError_t launch_scale(const Scaling& what, int most, const Guard& guard, cudaStream_t stream) {
  if (what.count == 0) return cudaSuccess;
  const std::uint64_t wanted = (what.count + kBlock - 1) / kBlock;
  const auto limit = static_cast<std::uint64_t>(most);
  const auto blocks = static_cast<int>(wanted < limit ? wanted : limit);
  return enqueue_alone(scale, blocks, kBlock, stream, what, guard);
}

}  // namespace gdrx::gpu
