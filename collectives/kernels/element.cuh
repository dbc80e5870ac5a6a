// SPDX-License-Identifier: Apache-2.0
// Element types on the GPU: what is stored, what accumulates. The same results as
// collectives/reduce gives on the host: narrow floats accumulate in float and are rounded once.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "collectives/kernels/pack.cuh"
#include "gdrx/types.hpp"

namespace gdrx::gpu {

template <class T>
struct Plain {
  using Stored = T;
  using Accumulator = T;
  static __device__ __forceinline__ T load(T value) { return value; }
  static __device__ __forceinline__ T store(T value) { return value; }
};

using Float = Plain<float>;

struct Half {
  using Stored = std::uint16_t;
  using Accumulator = float;
  static __device__ __forceinline__ float load(Stored bits) {
    return __half2float(__ushort_as_half(bits));
  }
  static __device__ __forceinline__ Stored store(float value) {
    return __half_as_ushort(__float2half_rn(value));
  }
};

struct Bfloat16 {
  using Stored = std::uint16_t;
  using Accumulator = float;
  static __device__ __forceinline__ float load(Stored bits) {
    return __uint_as_float(static_cast<std::uint32_t>(bits) << 16);
  }
  static __device__ __forceinline__ Stored store(float value) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  }
};

template <__nv_fp8_interpretation_t kForm>
struct Float8 {
  using Stored = std::uint8_t;
  using Accumulator = float;
  static __device__ __forceinline__ float load(Stored bits) {
    return __half2float(static_cast<__half>(__nv_cvt_fp8_to_halfraw(bits, kForm)));
  }
  static __device__ __forceinline__ Stored store(float value) {
    return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, kForm);
  }
};
using E4m3 = Float8<__NV_E4M3>;
using E5m2 = Float8<__NV_E5M2>;

/// Integers wrap: their arithmetic is that of unsigned ones, and not of int, which narrow ones
/// become.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 8), std::uint32_t, std::uint64_t>;

struct Sum {
  template <class T>
  static __device__ __forceinline__ T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    } else {
      return a + b;
    }
  }
};

struct Prod {
  template <class T>
  static __device__ __forceinline__ T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
    } else {
      return a * b;
    }
  }
};

/// The sums of one pack of floating-point numbers.
template <class E>
class Accumulators {
 public:
  __device__ __forceinline__ void set(Pack pack) {
    const Elements elements = unpack(pack);
#pragma unroll
    for (int i = 0; i < kPerPack; ++i) values_[i] = E::load(elements.at[i]);
  }

  __device__ __forceinline__ void add(Pack pack) {
    const Elements elements = unpack(pack);
#pragma unroll
    for (int i = 0; i < kPerPack; ++i) values_[i] = values_[i] + E::load(elements.at[i]);
  }

  /// `over`: 0, or what a sum is divided by.
  __device__ __forceinline__ Pack finish(std::int32_t over) {
    if (__builtin_expect(over > 0, 0)) divide(over);
    Elements elements;
#pragma unroll
    for (int i = 0; i < kPerPack; ++i) elements.at[i] = E::store(values_[i]);
    return *reinterpret_cast<const Pack*>(elements.at);
  }

 private:
  using T = typename E::Accumulator;
  static constexpr int kPerPack = sizeof(Pack) / sizeof(typename E::Stored);
  struct alignas(sizeof(Pack)) Elements {
    typename E::Stored at[kPerPack];
  };

  static __device__ __forceinline__ Elements unpack(Pack pack) {
    Elements elements;
    *reinterpret_cast<Pack*>(elements.at) = pack;
    return elements;
  }

  __device__ __forceinline__ void divide(std::int32_t over) {
#pragma unroll
    for (int i = 0; i < kPerPack; ++i) values_[i] = values_[i] / static_cast<T>(over);
  }

  T values_[kPerPack];
};

}  // namespace gdrx::gpu
