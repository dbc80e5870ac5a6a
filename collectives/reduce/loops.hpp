// SPDX-License-Identifier: Apache-2.0
// The loops of a kernel, compiled once an instruction set with GDRX_ISA as their namespace. A block
// of accumulators stays in the L1 cache while the sources pass by: n reads and one write of memory.
#pragma once

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "collectives/reduce/narrow_float.hpp"

namespace gdrx::reduce::GDRX_ISA {

constexpr std::size_t kBlock = 2048;  // accumulators: 8 KiB of float, 16 KiB of double

/// An element at any address.
template <class T>
struct __attribute__((packed, may_alias)) Loose {
  T value;
};

// ---- element types: what is stored, what accumulates, how they convert -------------------------

template <class T>
struct Plain {
  using Stored = T;
  using Accumulator = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};

template <class Bits, float (*kLoad)(Bits) noexcept, Bits (*kStore)(float) noexcept>
struct Narrow {
  using Stored = Bits;
  using Accumulator = float;
  static float load(Bits value) { return kLoad(value); }
  static Bits store(float value) { return kStore(value); }
};

using Half = Narrow<std::uint16_t, half_to_float, float_to_half>;

// ---- operators ----------------------------------------------------------------------------------

template <class T>
using Wrapping = typename std::conditional_t<(sizeof(T) < 4), std::type_identity<std::uint32_t>,
                                             std::make_unsigned<T>>::type;

struct Sum {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::integral<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    } else {
      return a + b;
    }
  }
};

struct Prod {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::integral<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
    } else {
      return a * b;
    }
  }
};

// A NaN in b wins, a NaN in a stays: the comparison with it is false.
struct Min {
  template <class T>
  static T apply(T a, T b) {
    return b < a || b != b ? b : a;  // NOLINT(misc-redundant-expression)
  }
};

struct Max {
  template <class T>
  static T apply(T a, T b) {
    return b > a || b != b ? b : a;  // NOLINT(misc-redundant-expression)
  }
};

// ---- blocks -------------------------------------------------------------------------------------

#if defined(__F16C__)
inline std::size_t load_halves(float* to, const void* halves, std::size_t count) {
  const auto* from = static_cast<const std::byte*>(halves);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(
        to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(from + 2 * i))));
  }
  return i;
}

inline std::size_t store_halves(void* halves, const float* from, std::size_t count) {
  auto* to = static_cast<std::byte*>(halves);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i_u*>(to + 2 * i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}
#else
inline std::size_t load_halves(float*, const void*, std::size_t) { return 0; }
inline std::size_t store_halves(void*, const float*, std::size_t) { return 0; }
#endif

template <class E>
static void load(typename E::Accumulator* to, const void* from, std::size_t begin,
                 std::size_t count) {
  const auto* elements = static_cast<const Loose<typename E::Stored>*>(from) + begin;
  std::size_t i = 0;
  if constexpr (std::same_as<E, Half>) {
    i = load_halves(to, elements, count);
  }
  for (; i < count; ++i) to[i] = E::load(elements[i].value);
}

template <class E>
static void store(void* to, const typename E::Accumulator* from, std::size_t begin,
                  std::size_t count) {
  auto* elements = static_cast<Loose<typename E::Stored>*>(to) + begin;
  std::size_t i = 0;
  if constexpr (std::same_as<E, Half>) {
    i = store_halves(elements, from, count);
  }
  for (; i < count; ++i) elements[i].value = E::store(from[i]);
}

template <class E, class Op>
static void accumulate(typename E::Accumulator* acc, const void* source, std::size_t begin,
                       std::size_t count) {
  if constexpr (std::same_as<E, Half>) {  // converted by blocks, in the L1 cache
    float values[kBlock];
    load<E>(values, source, begin, count);
    for (std::size_t i = 0; i < count; ++i) acc[i] = Op::apply(acc[i], values[i]);
  } else {
    const auto* a = static_cast<const Loose<typename E::Stored>*>(source) + begin;
    for (std::size_t i = 0; i < count; ++i) acc[i] = Op::apply(acc[i], E::load(a[i].value));
  }
}

/// The first two sources at once, into the accumulators or, where nothing follows, into the result:
/// each pass that is saved is one of the L1 cache, which bounds what lies in the L2 cache.
template <class E, class Op, class To>
static void combine(To* to, const void* first, const void* second, std::size_t begin,
                    std::size_t count) {
  const auto* a = static_cast<const Loose<typename E::Stored>*>(first) + begin;
  const auto* b = static_cast<const Loose<typename E::Stored>*>(second) + begin;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = Op::apply(E::load(a[i].value), E::load(b[i].value));
    if constexpr (std::same_as<To, typename E::Accumulator>) {
      to[i] = value;
    } else {
      to[i].value = E::store(value);
    }
  }
}

/// Two sources a pass: half the traffic of the accumulators.
template <class E, class Op>
static void accumulate_two(typename E::Accumulator* acc, const void* first, const void* second,
                           std::size_t begin, std::size_t count) {
  const auto* a = static_cast<const Loose<typename E::Stored>*>(first) + begin;
  const auto* b = static_cast<const Loose<typename E::Stored>*>(second) + begin;
  for (std::size_t i = 0; i < count; ++i) {
    acc[i] = Op::apply(Op::apply(acc[i], E::load(a[i].value)), E::load(b[i].value));
  }
}

template <class T>
static void divide(T* acc, std::size_t count, int by) {
  const auto divisor = static_cast<T>(by);
  if constexpr (std::integral<T>) {
    // More ranks than an 8-bit type can count: divide in the wider one.
    for (std::size_t i = 0; i < count; ++i) {
      acc[i] =
          static_cast<T>(static_cast<std::conditional_t<(sizeof(T) < 8), std::int64_t, T>>(acc[i]) /
                         static_cast<std::conditional_t<(sizeof(T) < 8), std::int64_t, T>>(by));
    }
  } else {
    for (std::size_t i = 0; i < count; ++i) acc[i] = acc[i] / divisor;
  }
}

template <class E, class Op>
static void reduce_all(void* dst, const void* const* sources, std::size_t source_count,
                       std::size_t count, int finish_over) {
  if constexpr (!std::same_as<E, Half>) {
    if (source_count == 2 && finish_over == 0) {
      auto* to = static_cast<Loose<typename E::Stored>*>(dst);
      return combine<E, Op>(to, sources[0], sources[1], 0, count);
    }
  }
  typename E::Accumulator acc[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t length = std::min(kBlock, count - begin);
    std::size_t s = 1;
    if (std::same_as<E, Half> || source_count == 1) {
      load<E>(acc, sources[0], begin, length);
    } else {
      combine<E, Op>(acc, sources[0], sources[1], begin, length);
      s = 2;
    }
    if constexpr (!std::same_as<E, Half>) {
      for (; s + 1 < source_count; s += 2) {
        accumulate_two<E, Op>(acc, sources[s], sources[s + 1], begin, length);
      }
    }
    for (; s < source_count; ++s) accumulate<E, Op>(acc, sources[s], begin, length);
    if constexpr (std::same_as<Op, Sum>) {
      if (finish_over > 0) divide(acc, length, finish_over);
    }
    store<E>(dst, acc, begin, length);
  }
}

}  // namespace gdrx::reduce::GDRX_ISA
