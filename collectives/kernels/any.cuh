// SPDX-License-Identifier: Apache-2.0
// The reduction of packs of any type by any operator, by functions that are told which. The
// compiler makes them anew for each kernel that calls them, so short ones are worth more than fast
// ones: types whose values fit into one kind of number share its code, and a kind asks for the type
// and the operator once a pack.
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

/// The values of a pack, of which there are up to `kMost`. What it does not have is 0.
template <class T, int kMost>
struct Values {
  T at[kMost];
};

/// `load` of each run of kBits.
template <int kBits, class All, class Load>
__device__ __forceinline__ All split(Pack pack, Load load) {
  All values{};
#pragma unroll
  for (int i = 0; i < 128 / kBits; ++i) {
    const std::uint64_t half = i * kBits < 64 ? pack.low : pack.high;
    values.at[i] = load(static_cast<std::uint32_t>(half >> (i * kBits % 64)));
  }
  return values;
}

template <int kBits, class All, class Store>
__device__ __forceinline__ Pack join(const All& values, Store store) {
  Pack pack{0, 0};
#pragma unroll
  for (int i = 0; i < 128 / kBits; ++i) {
    const std::uint64_t bits = static_cast<std::uint64_t>(store(values.at[i])) << (i * kBits % 64);
    (i * kBits < 64 ? pack.low : pack.high) |= bits;
  }
  return pack;
}

/// In few instructions where it is called, as averages are rarely of these types.
template <class T>
__device__ __noinline__ T divide(T value, std::int32_t over) {
  return value / static_cast<T>(over);
}

struct Single {
  using T = float;
  static constexpr int kMost = 4;
  using All = Values<T, kMost>;

  __device__ __forceinline__ All load(Pack pack) const {
    return split<32, All>(pack, [](std::uint32_t bits) { return __uint_as_float(bits); });
  }
  __device__ __forceinline__ Pack store(const All& values) const {
    return join<32>(values, [](float value) { return __float_as_uint(value); });
  }
  __device__ __forceinline__ T ordered(T value) const { return value; }
  __device__ __forceinline__ T divided(T value, std::int32_t over) const {
    return divide(value, over);
  }
};

/// Floats of 16 and 8 bits: accumulated in float, as everywhere.
struct Narrow {
  using T = float;
  static constexpr int kMost = 16;
  using All = Values<T, kMost>;
  DataType type;

  template <class E, int kBits>
  static __device__ __forceinline__ All load_as(Pack pack) {
    return split<kBits, All>(
        pack, [](std::uint32_t bits) { return E::load(static_cast<typename E::Stored>(bits)); });
  }
  template <class E, int kBits>
  static __device__ __forceinline__ Pack store_as(const All& values) {
    return join<kBits>(values, [](float value) { return E::store(value); });
  }

  __device__ __forceinline__ All load(Pack pack) const {
    if (type == DataType::float16) return load_as<Half, 16>(pack);
    if (type == DataType::bfloat16) return load_as<Bfloat16, 16>(pack);
    return type == DataType::float8_e4m3 ? load_as<E4m3, 8>(pack) : load_as<E5m2, 8>(pack);
  }
  __device__ __forceinline__ Pack store(const All& values) const {
    if (type == DataType::float16) return store_as<Half, 16>(values);
    if (type == DataType::bfloat16) return store_as<Bfloat16, 16>(values);
    return type == DataType::float8_e4m3 ? store_as<E4m3, 8>(values) : store_as<E5m2, 8>(values);
  }
  __device__ __forceinline__ T ordered(T value) const { return value; }
  __device__ __forceinline__ T divided(T value, std::int32_t over) const {
    return divide(value, over);
  }
};

/// int32 and uint32.
struct Integers {
  using T = std::int32_t;
  static constexpr int kMost = 4;
  using All = Values<T, kMost>;
  DataType type;

  __device__ __forceinline__ All load(Pack pack) const {
    return split<32, All>(pack, [](std::uint32_t bits) { return static_cast<T>(bits); });
  }
  __device__ __forceinline__ Pack store(const All& values) const {
    return join<32>(values, [](T value) { return static_cast<std::uint32_t>(value); });
  }
  /// By which numbers without a sign are less than others as those with one are.
  __device__ __forceinline__ T ordered(T value) const {
    return type == DataType::uint32 ? value ^ std::numeric_limits<T>::min() : value;
  }
  __device__ __forceinline__ T divided(T value, std::int32_t over) const {
    if (type == DataType::int32) return divide(value, over);
    return static_cast<T>(divide(static_cast<std::uint32_t>(value), over));
  }
};

/// int8 and uint8. What overflows is cut off when it is stored, which is the same as wrapping at
/// every step.
struct Bytes {
  using T = std::int32_t;
  static constexpr int kMost = 16;
  using All = Values<T, kMost>;
  DataType type;

  __device__ __forceinline__ T cut(std::uint32_t bits) const {
    const auto byte = static_cast<std::uint8_t>(bits);
    return type == DataType::int8 ? T{static_cast<std::int8_t>(byte)} : T{byte};
  }
  __device__ __forceinline__ All load(Pack pack) const {
    return split<8, All>(pack, [this](std::uint32_t bits) { return cut(bits); });
  }
  __device__ __forceinline__ Pack store(const All& values) const {
    return join<8>(values, [](T value) { return static_cast<std::uint8_t>(value); });
  }
  __device__ __forceinline__ T ordered(T value) const { return value; }
  __device__ __forceinline__ T divided(T value, std::int32_t over) const {
    return divide(cut(static_cast<std::uint32_t>(value)), over);
  }
};

/// A type of 64 bits.
template <class Stored>
struct Wide {
  using T = Stored;
  static constexpr int kMost = 2;
  using All = Values<T, kMost>;

  __device__ __forceinline__ All load(Pack pack) const {
    All values;
    *reinterpret_cast<Pack*>(values.at) = pack;
    return values;
  }
  __device__ __forceinline__ Pack store(const All& values) const {
    return *reinterpret_cast<const Pack*>(values.at);
  }
  __device__ __forceinline__ T ordered(T value) const { return value; }
  __device__ __forceinline__ T divided(T value, std::int32_t over) const {
    return divide(value, over);
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
    return each([&](T a, T b) {  // as Min and Max have it: a NaN in b wins, one in a stays
      const T x = kind.ordered(a);
      const T y = kind.ordered(b);
      return (least ? y < x : y > x) || y != y ? b : a;
    });
  }
  each([](T a, T b) { return Sum::apply(a, b); });
}

/// A function a kind: one for all would keep the registers of the widest for each.
template <class Kind>
__device__ __noinline__ Pack reduce_kind(const Kind kind, const Reduction how,
                                         const Operands operands, int count) {
  typename Kind::All sum;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    const auto its = kind.load(*reinterpret_cast<const Pack*>(operands.at(i)));
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

static __device__ __forceinline__ Pack reduce_any(const Reduction& how, const Operands& operands,
                                                  int count) {
  const auto type = static_cast<DataType>(how.type);
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
      return reduce_kind(Bytes{type}, how, operands, count);
    case DataType::int32:
    case DataType::uint32:
      return reduce_kind(Integers{type}, how, operands, count);
    case DataType::int64:
      return reduce_kind(Wide<std::int64_t>{}, how, operands, count);
    case DataType::uint64:
      return reduce_kind(Wide<std::uint64_t>{}, how, operands, count);
    case DataType::float32:
      return reduce_kind(Single{}, how, operands, count);
    case DataType::float64:
      return reduce_kind(Wide<double>{}, how, operands, count);
    default:
      return reduce_kind(Narrow{type}, how, operands, count);
  }
}

}  // namespace gdrx::gpu
