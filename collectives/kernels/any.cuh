// SPDX-License-Identifier: Apache-2.0
// The reduction of packs of any type by any operator, as one function that is told which. The
// compiler makes it anew for each kernel that calls it, so a short one is worth more than a fast
// one: types whose values fit into one kind of number share its code, and a kind asks for the type
// and the operator once an operand and half a pack. It calls no function of ours: a kernel saves
// all its registers around a function that does.
#pragma once

#include <limits>

#include "collectives/kernels/element.cuh"

namespace gdrx::gpu {

struct Reduction {
  std::int32_t type;  // DataType
  std::int32_t op;    // ReduceOp
  std::int32_t over;  // 0, or what a sum is divided by
};

/// A pack of each operand: number `self` at a place of its own, the others `stride` bytes apart.
struct Operands {
  const std::uint8_t* others;
  std::uint64_t stride;
  const std::uint8_t* own;
  std::int32_t self;

  __device__ __forceinline__ const std::uint8_t* at(int i) const {
    return i == self ? own : others + static_cast<std::uint64_t>(i < self ? i : i - 1) * stride;
  }
};

/// The values of half a pack, of which there are up to `kMost`. What it does not have is 0.
template <class T, int kMost>
struct Values {
  T at[kMost];
};

/// `load` of each run of kBits.
template <int kBits, class All, class Load>
__device__ __forceinline__ All split(std::uint64_t half, Load load) {
  All values{};
#pragma unroll
  for (int i = 0; i < 64 / kBits; ++i) {
    values.at[i] = load(static_cast<std::uint32_t>(half >> (i * kBits)));
  }
  return values;
}

template <int kBits, class All, class Store>
__device__ __forceinline__ std::uint64_t join(const All& values, Store store) {
  std::uint64_t half = 0;
#pragma unroll
  for (int i = 0; i < 64 / kBits; ++i) {
    half |= static_cast<std::uint64_t>(store(values.at[i])) << (i * kBits);
  }
  return half;
}

/// float and narrower: accumulated in float, as everywhere.
struct Floats {
  using T = float;
  static constexpr int kMost = 8;
  using All = Values<T, kMost>;
  DataType type;

  template <class E, int kBits>
  static __device__ __forceinline__ All load_as(std::uint64_t half) {
    return split<kBits, All>(
        half, [](std::uint32_t bits) { return E::load(static_cast<typename E::Stored>(bits)); });
  }
  template <class E, int kBits>
  static __device__ __forceinline__ std::uint64_t store_as(const All& values) {
    return join<kBits>(values, [](float value) { return E::store(value); });
  }

  __device__ __forceinline__ All load(std::uint64_t half) const {
    if (type == DataType::float32) {
      return split<32, All>(half, [](std::uint32_t bits) { return __uint_as_float(bits); });
    }
    if (type == DataType::float16) return load_as<Half, 16>(half);
    if (type == DataType::bfloat16) return load_as<Bfloat16, 16>(half);
    return type == DataType::float8_e4m3 ? load_as<E4m3, 8>(half) : load_as<E5m2, 8>(half);
  }
  __device__ __forceinline__ std::uint64_t store(const All& values) const {
    if (type == DataType::float32) {
      return join<32>(values, [](float value) { return __float_as_uint(value); });
    }
    if (type == DataType::float16) return store_as<Half, 16>(values);
    if (type == DataType::bfloat16) return store_as<Bfloat16, 16>(values);
    return type == DataType::float8_e4m3 ? store_as<E4m3, 8>(values) : store_as<E5m2, 8>(values);
  }
  __device__ __forceinline__ T ordered(T value) const { return value; }
  __device__ __forceinline__ T divided(T value, std::int32_t over) const {
    return value / static_cast<T>(over);
  }
};

/// Integers of at most 32 bits. What overflows a narrow one is cut off when it is stored, which is
/// the same as wrapping at every step.
struct Integers {
  using T = std::int32_t;
  static constexpr int kMost = 8;
  using All = Values<T, kMost>;
  DataType type;

  __device__ __forceinline__ T cut(std::uint32_t bits) const {
    const auto byte = static_cast<std::uint8_t>(bits);
    return type == DataType::int8 ? T{static_cast<std::int8_t>(byte)} : T{byte};
  }
  __device__ __forceinline__ bool is_wide() const {
    return type == DataType::int32 || type == DataType::uint32;
  }

  __device__ __forceinline__ All load(std::uint64_t half) const {
    if (is_wide()) {
      return split<32, All>(half, [](std::uint32_t bits) { return static_cast<T>(bits); });
    }
    return split<8, All>(half, [this](std::uint32_t bits) { return cut(bits); });
  }
  __device__ __forceinline__ std::uint64_t store(const All& values) const {
    if (is_wide()) {
      return join<32>(values, [](T value) { return static_cast<std::uint32_t>(value); });
    }
    return join<8>(values, [](T value) { return static_cast<std::uint8_t>(value); });
  }
  /// By which numbers without a sign of 32 bits are less than others as those with one are.
  __device__ __forceinline__ T ordered(T value) const {
    return type == DataType::uint32 ? value ^ std::numeric_limits<T>::min() : value;
  }
  __device__ __forceinline__ T divided(T value, std::int32_t over) const {
    const auto bits = static_cast<std::uint32_t>(value);
    if (type == DataType::uint32) return static_cast<T>(bits / static_cast<std::uint32_t>(over));
    return (is_wide() ? value : cut(bits)) / over;
  }
};

/// A type of 64 bits.
template <class Stored>
struct Wide {
  using T = Stored;
  static constexpr int kMost = 1;
  using All = Values<T, kMost>;

  __device__ __forceinline__ All load(std::uint64_t half) const {
    return {{*reinterpret_cast<const Stored*>(&half)}};
  }
  __device__ __forceinline__ std::uint64_t store(const All& values) const {
    return *reinterpret_cast<const std::uint64_t*>(values.at);
  }
  __device__ __forceinline__ T ordered(T value) const { return value; }
  __device__ __forceinline__ T divided(T value, std::int32_t over) const {
    return value / static_cast<T>(over);
  }
};

template <class Kind>
__device__ __forceinline__ void add(const Kind& kind, ReduceOp op, typename Kind::All& sum,
                                    const typename Kind::All& other) {
  const auto each = [&](auto apply) {
#pragma unroll
    for (int k = 0; k < Kind::kMost; ++k) sum.at[k] = apply(sum.at[k], other.at[k]);
  };
  using T = typename Kind::T;
  if (op == ReduceOp::prod) return each([](T a, T b) { return Prod::apply(a, b); });
  if (op == ReduceOp::min || op == ReduceOp::max) {
    const bool least = op == ReduceOp::min;
    return each([&](T a, T b) {  // a NaN in b wins, one in a stays
      const T x = kind.ordered(a);
      const T y = kind.ordered(b);
      return (least ? y < x : y > x) || y != y ? b : a;
    });
  }
  each([](T a, T b) { return Sum::apply(a, b); });
}

template <class Kind>
__device__ __forceinline__ std::uint64_t reduce_half(const Kind& kind, const Reduction& how,
                                                     const Operands& operands, int count,
                                                     std::uint32_t at) {
  typename Kind::All sum;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    const auto its = kind.load(*reinterpret_cast<const std::uint64_t*>(operands.at(i) + at));
    if (i == 0) {
      sum = its;
    } else {
      add(kind, static_cast<ReduceOp>(how.op), sum, its);
    }
  }
  if (how.over > 0) {
#pragma unroll  // else the values live in memory, whatever the operator is
    for (int k = 0; k < Kind::kMost; ++k) sum.at[k] = kind.divided(sum.at[k], how.over);
  }
  return kind.store(sum);
}

template <class Kind>
__device__ __forceinline__ Pack reduce_kind(const Kind& kind, const Reduction& how,
                                            const Operands& operands, int count) {
  Pack result{0, 0};
#pragma unroll 1
  for (std::uint32_t at = 0; at < sizeof(Pack); at += sizeof(std::uint64_t)) {
    result.low = result.high;
    result.high = reduce_half(kind, how, operands, count, at);
  }
  return result;
}

static __device__ __noinline__ Pack reduce_any(const Reduction how, const Operands operands,
                                               int count) {
  const auto type = static_cast<DataType>(how.type);
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::int32:
    case DataType::uint32:
      return reduce_kind(Integers{type}, how, operands, count);
    case DataType::int64:
      return reduce_kind(Wide<std::int64_t>{}, how, operands, count);
    case DataType::uint64:
      return reduce_kind(Wide<std::uint64_t>{}, how, operands, count);
    case DataType::float64:
      return reduce_kind(Wide<double>{}, how, operands, count);
    default:
      return reduce_kind(Floats{type}, how, operands, count);
  }
}

}  // namespace gdrx::gpu
