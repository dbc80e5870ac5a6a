// SPDX-License-Identifier: Apache-2.0
// Elements of every type from small numbers, and every operator in plain arithmetic: a reference
// that shares nothing with the library but its list of types.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "collectives/reduce/narrow_float.hpp"
#include "gdrx/types.hpp"

namespace gdrx::test {

/// A number; of complex numbers the second part too, of pairs the index.
struct Value {
  long double first = 0;
  long double second = 0;
};

template <class T>
void put_as(std::byte* to, long double value) {
  const T stored = static_cast<T>(value);
  // Of x86-64's ten bytes the other six say nothing.
  const std::size_t used = sizeof(T) == 16 && __LDBL_MANT_DIG__ == 64 ? 10 : sizeof(T);
  std::memcpy(to, &stored, used);
}

template <class T>
void put_pair(std::byte* to, const Value& value) {
  struct Pair {
    T value;
    int index;
  };
  put_as<T>(to, value.first);
  put_as<int>(to + offsetof(Pair, index), value.second);
}

template <class Bits>
void put_bits(std::byte* to, Bits bits) {
  std::memcpy(to, &bits, sizeof bits);
}

/// `to`: size_of(type) bytes. Padding is zero.
inline void put(DataType type, const Value& value, std::byte* to) {
  std::memset(to, 0, size_of(type));
  const auto narrow = static_cast<float>(value.first);
  switch (type) {
    case DataType::int8:
      return put_as<std::int8_t>(to, value.first);
    case DataType::uint8:
    case DataType::boolean:
    case DataType::byte:
      return put_as<std::uint8_t>(to, value.first);
    case DataType::int16:
      return put_as<std::int16_t>(to, value.first);
    case DataType::uint16:
      return put_as<std::uint16_t>(to, value.first);
    case DataType::int32:
      return put_as<std::int32_t>(to, value.first);
    case DataType::uint32:
      return put_as<std::uint32_t>(to, value.first);
    case DataType::int64:
      return put_as<std::int64_t>(to, value.first);
    case DataType::uint64:
      return put_as<std::uint64_t>(to, value.first);
    case DataType::float16:
      return put_bits(to, reduce::float_to_half(narrow));
    case DataType::bfloat16:
      return put_bits(to, reduce::float_to_bfloat16(narrow));
    case DataType::float32:
      return put_as<float>(to, value.first);
    case DataType::float64:
      return put_as<double>(to, value.first);
    case DataType::float8_e4m3:
      return put_bits(to, reduce::float_to_e4m3(narrow));
    case DataType::float8_e5m2:
      return put_bits(to, reduce::float_to_e5m2(narrow));
    case DataType::float8_e4m3fnuz:
      return put_bits(to, reduce::float_to_e4m3fnuz(narrow));
    case DataType::float8_e5m2fnuz:
      return put_bits(to, reduce::float_to_e5m2fnuz(narrow));
    case DataType::complex64:
      put_as<float>(to, value.first);
      return put_as<float>(to + sizeof(float), value.second);
    case DataType::complex128:
      put_as<double>(to, value.first);
      return put_as<double>(to + sizeof(double), value.second);
    case DataType::long_double:
      return put_as<long double>(to, value.first);
    case DataType::float_int:
      return put_pair<float>(to, value);
    case DataType::double_int:
      return put_pair<double>(to, value);
    case DataType::long_int:
      return put_pair<long>(to, value);
    case DataType::int_int:
      return put_pair<int>(to, value);
    case DataType::short_int:
      return put_pair<short>(to, value);
    case DataType::long_double_int:
      return put_pair<long double>(to, value);
  }
}

/// What `rank` gives as element i: sums and products of up to eight are exact in every type.
inline Value input_of(DataType type, ReduceOp op, int rank, std::size_t i) {
  const auto mixed = (i * 2654435761U + static_cast<std::size_t>(rank) * 40503U) >> 3;
  const auto sign = mixed % 2 == 0 ? 1.0L : -1.0L;
  const bool logical = op == ReduceOp::land || op == ReduceOp::lor || op == ReduceOp::lxor;
  switch (class_of(type)) {
    case TypeClass::boolean:
      return {static_cast<long double>(mixed % 3 != 0)};
    case TypeClass::byte:
      return {static_cast<long double>(mixed % 256)};
    case TypeClass::integer:
      if (logical) return {static_cast<long double>(mixed % 3)};
      if (op == ReduceOp::prod) return {static_cast<long double>(1 + mixed % 2)};
      return {static_cast<long double>(mixed % 15)};
    case TypeClass::floating:
      if (op == ReduceOp::prod) return {sign};
      return {static_cast<long double>(mixed % 3) - 1};
    case TypeClass::complex:
      return {sign, mixed % 5 < 2 ? 1.0L : -1.0L};
    case TypeClass::pair:
      return {static_cast<long double>(mixed % 4), static_cast<long double>((mixed >> 5) % 7)};
  }
  return {};
}

/// a (op) b.
inline Value combine(ReduceOp op, TypeClass of, const Value& a, const Value& b) {
  const auto left = static_cast<std::int64_t>(a.first);
  const auto right = static_cast<std::int64_t>(b.first);
  const bool bits = of != TypeClass::boolean;  // of 0 and 1 the two are the same
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
      return {a.first + b.first, a.second + b.second};
    case ReduceOp::prod:
      return {a.first * b.first - a.second * b.second, a.first * b.second + a.second * b.first};
    case ReduceOp::min:
      return {std::min(a.first, b.first)};
    case ReduceOp::max:
      return {std::max(a.first, b.first)};
    case ReduceOp::land:
      return {static_cast<long double>(left != 0 && right != 0)};
    case ReduceOp::lor:
      return {static_cast<long double>(left != 0 || right != 0)};
    case ReduceOp::lxor:
      return {static_cast<long double>((left != 0) != (right != 0))};
    case ReduceOp::band:
      return {static_cast<long double>(bits ? left & right : left * right)};
    case ReduceOp::bor:
      return {static_cast<long double>(left | right)};
    case ReduceOp::bxor:
      return {static_cast<long double>(left ^ right)};
    case ReduceOp::minloc:
      if (a.first != b.first) return a.first < b.first ? a : b;
      return a.second <= b.second ? a : b;
    case ReduceOp::maxloc:
      if (a.first != b.first) return a.first > b.first ? a : b;
      return a.second <= b.second ? a : b;
    case ReduceOp::user:
      break;
  }
  return {};
}

/// An average of floats is divided in float, of doubles in double, of integers cut.
inline long double divided(DataType type, long double sum, int ranks) {
  if (class_of(type) == TypeClass::integer) return std::trunc(sum / ranks);
  if (type == DataType::long_double) return sum / ranks;
  if (type == DataType::float64 || type == DataType::complex128) {
    return static_cast<double>(sum) / ranks;
  }
  return static_cast<float>(sum) / static_cast<float>(ranks);
}

inline std::vector<std::byte> inputs(DataType type, ReduceOp op, int rank, std::size_t count) {
  std::vector<std::byte> bytes(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i) {
    put(type, input_of(type, op, rank, i), bytes.data() + i * size_of(type));
  }
  return bytes;
}

inline std::vector<std::byte> expected(DataType type, ReduceOp op, int ranks, std::size_t count) {
  std::vector<std::byte> bytes(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i) {
    Value value = input_of(type, op, 0, i);
    for (int rank = 1; rank < ranks; ++rank) {
      value = combine(op, class_of(type), value, input_of(type, op, rank, i));
    }
    if (op == ReduceOp::avg) {
      value = {divided(type, value.first, ranks), divided(type, value.second, ranks)};
    }
    put(type, value, bytes.data() + i * size_of(type));
  }
  return bytes;
}

/// A complex zero has any sign, by the order of the products.
inline bool same(DataType type, const std::byte* a, const std::byte* b, std::size_t count) {
  const auto equal = [&]<class T>(T) {
    const auto part = [](const std::byte* from, std::size_t i) {
      T value;
      std::memcpy(&value, from + i * sizeof value, sizeof value);
      return value;
    };
    for (std::size_t i = 0; i < 2 * count; ++i) {
      if (part(a, i) != part(b, i)) return false;
    }
    return true;
  };
  if (type == DataType::complex64) return equal(float{});
  if (type == DataType::complex128) return equal(double{});
  return std::memcmp(a, b, count * size_of(type)) == 0;
}

}  // namespace gdrx::test
