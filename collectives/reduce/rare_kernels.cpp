// SPDX-License-Identifier: Apache-2.0
// The kernels of what programs reduce seldom: compiled once, for every processor.
#include <array>
#include <cstring>

#include "collectives/reduce/kernel_table.hpp"
#include "collectives/reduce/loops.hpp"
#include "collectives/reduce/narrow_float.hpp"

namespace gdrx::reduce::GDRX_ISA {
namespace {

using E4m3Fnuz = Narrow<std::uint8_t, e4m3fnuz_to_float, float_to_e4m3fnuz>;
using E5m2Fnuz = Narrow<std::uint8_t, e5m2fnuz_to_float, float_to_e5m2fnuz>;

// ---- operators ----------------------------------------------------------------------------------

struct And {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<int>(a != 0) & static_cast<int>(b != 0));
  }
};
struct Or {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<int>(a != 0) | static_cast<int>(b != 0));
  }
};
struct Xor {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<int>(a != 0) ^ static_cast<int>(b != 0));
  }
};
struct BitAnd {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// ---- types --------------------------------------------------------------------------------------

template <class T>
struct Complex {
  T real;
  T imaginary;
  friend Complex operator*(Complex a, Complex b) {
    return {a.real * b.real - a.imaginary * b.imaginary,
            a.real * b.imaginary + a.imaginary * b.real};
  }
};

/// Of x86-64 the last six bytes say nothing: they are zero in a result.
struct LongDouble {
  struct Stored {
    std::byte bytes[sizeof(long double)];
  };
  using Accumulator = long double;
  static constexpr std::size_t kUsed = __LDBL_MANT_DIG__ == 64 ? 10 : sizeof(long double);
  static long double load(Stored stored) {
    long double value = 0;
    std::memcpy(&value, stored.bytes, kUsed);
    return value;
  }
  static Stored store(long double value) {
    Stored stored{};
    std::memcpy(stored.bytes, &value, kUsed);
    return stored;
  }
};

/// C's layout of MPI's pairs.
template <class T>
struct Pair {
  T value;
  int index;
};

// A NaN comes before every number; of equal values the lower index counts. So the order of the
// operands does not matter.
template <bool kLeast, class T>
bool comes_first(const Pair<T>& b, const Pair<T>& a) {
  const bool a_is_nan = a.value != a.value;  // NOLINT(misc-redundant-expression)
  const bool b_is_nan = b.value != b.value;  // NOLINT(misc-redundant-expression)
  if (a_is_nan != b_is_nan) return b_is_nan;
  if (a_is_nan || b.value == a.value) return b.index < a.index;
  return kLeast ? b.value < a.value : b.value > a.value;
}

/// With the padding of the pair that is taken.
template <class T, bool kLeast>
void locate(void* dst, const void* const* sources, std::size_t source_count, std::size_t count,
            int) {
  constexpr std::size_t kSize = sizeof(Pair<T>);
  for (std::size_t offset = 0; offset < count * kSize; offset += kSize) {
    Pair<T> best;
    const std::byte* from = static_cast<const std::byte*>(sources[0]) + offset;
    std::memcpy(&best, from, kSize);
    for (std::size_t s = 1; s < source_count; ++s) {
      Pair<T> other;
      const std::byte* const next = static_cast<const std::byte*>(sources[s]) + offset;
      std::memcpy(&other, next, kSize);
      if (!comes_first<kLeast>(other, best)) continue;
      std::memcpy(&best, next, kSize);
      from = next;
    }
    std::memmove(static_cast<std::byte*>(dst) + offset, from, kSize);
  }
}

// ---- rows ---------------------------------------------------------------------------------------

template <class E>
constexpr KernelRow real_row() {
  KernelRow kernels{};
  at(kernels, ReduceOp::sum) = reduce_all<E, Sum>;
  at(kernels, ReduceOp::prod) = reduce_all<E, Prod>;
  at(kernels, ReduceOp::min) = reduce_all<E, Min>;
  at(kernels, ReduceOp::max) = reduce_all<E, Max>;
  at(kernels, ReduceOp::avg) = reduce_all<E, Sum>;
  at(kernels, ReduceOp::premul_sum) = reduce_all<E, Sum>;
  return kernels;
}

template <class T>
constexpr KernelRow complex_row() {
  KernelRow kernels{};
  at(kernels, ReduceOp::prod) = reduce_all<Plain<Complex<T>>, Prod>;
  return kernels;
}

/// Of an integer of either sign.
template <class T>
constexpr KernelRow integer_row() {
  KernelRow kernels{};
  at(kernels, ReduceOp::land) = reduce_all<Plain<T>, And>;
  at(kernels, ReduceOp::lor) = reduce_all<Plain<T>, Or>;
  at(kernels, ReduceOp::lxor) = reduce_all<Plain<T>, Xor>;
  at(kernels, ReduceOp::band) = reduce_all<Plain<T>, BitAnd>;
  at(kernels, ReduceOp::bor) = reduce_all<Plain<T>, BitOr>;
  at(kernels, ReduceOp::bxor) = reduce_all<Plain<T>, BitXor>;
  return kernels;
}

/// Every result is 0 or 1.
constexpr KernelRow bool_row() {
  KernelRow kernels = integer_row<std::uint8_t>();
  at(kernels, ReduceOp::band) = at(kernels, ReduceOp::land);
  at(kernels, ReduceOp::bor) = at(kernels, ReduceOp::lor);
  at(kernels, ReduceOp::bxor) = at(kernels, ReduceOp::lxor);
  return kernels;
}

constexpr KernelRow byte_row() {
  KernelRow kernels = integer_row<std::uint8_t>();
  for (const ReduceOp op : {ReduceOp::land, ReduceOp::lor, ReduceOp::lxor}) {
    at(kernels, op) = nullptr;
  }
  return kernels;
}

template <class T>
constexpr KernelRow pair_row() {
  KernelRow kernels{};
  at(kernels, ReduceOp::minloc) = locate<T, true>;
  at(kernels, ReduceOp::maxloc) = locate<T, false>;
  return kernels;
}

constexpr KernelTable table() {
  KernelTable kernels{};
  at(kernels, DataType::int8) = at(kernels, DataType::uint8) = integer_row<std::uint8_t>();
  at(kernels, DataType::int16) = at(kernels, DataType::uint16) = integer_row<std::uint16_t>();
  at(kernels, DataType::int32) = at(kernels, DataType::uint32) = integer_row<std::uint32_t>();
  at(kernels, DataType::int64) = at(kernels, DataType::uint64) = integer_row<std::uint64_t>();
  at(kernels, DataType::boolean) = bool_row();
  at(kernels, DataType::byte) = byte_row();
  at(kernels, DataType::complex64) = complex_row<float>();
  at(kernels, DataType::complex128) = complex_row<double>();
  at(kernels, DataType::long_double) = real_row<LongDouble>();
  at(kernels, DataType::float8_e4m3fnuz) = real_row<E4m3Fnuz>();
  at(kernels, DataType::float8_e5m2fnuz) = real_row<E5m2Fnuz>();
  at(kernels, DataType::float_int) = pair_row<float>();
  at(kernels, DataType::double_int) = pair_row<double>();
  at(kernels, DataType::long_int) = pair_row<long>();
  at(kernels, DataType::int_int) = pair_row<int>();
  at(kernels, DataType::short_int) = pair_row<short>();
  at(kernels, DataType::long_double_int) = pair_row<long double>();
  return kernels;
}

}  // namespace

extern const KernelTable kernels;
constexpr KernelTable kernels = table();

}  // namespace gdrx::reduce::GDRX_ISA
