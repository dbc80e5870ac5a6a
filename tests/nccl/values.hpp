// SPDX-License-Identifier: Apache-2.0
// What ranks put into a call and expect of it, in every type.
#pragma once

#include <array>
#include <cmath>
#include <functional>

#include "tests/nccl/world.hpp"

namespace gdrx::nccl {

/// How NCCL's types hold small numbers.
struct Format {
  Type type;
  std::size_t size;
  int mantissa;  // 0: a whole number
  int bias;
};
inline constexpr std::array<Format, 12> kFormats{{{0, 1, 0, 0},
                                                  {1, 1, 0, 0},
                                                  {2, 4, 0, 0},
                                                  {3, 4, 0, 0},
                                                  {4, 8, 0, 0},
                                                  {5, 8, 0, 0},
                                                  {6, 2, 10, 15},
                                                  {7, 4, 23, 127},
                                                  {8, 8, 52, 1023},
                                                  {9, 2, 7, 127},
                                                  {10, 1, 3, 7},
                                                  {11, 1, 2, 15}}};

/// Positive numbers that the format has.
inline void put(const Format& format, double value, std::byte* to) {
  auto bits = static_cast<std::uint64_t>(value);
  if (format.mantissa > 0) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent) * 2 - 1;
    bits = (static_cast<std::uint64_t>(exponent - 1 + format.bias) << format.mantissa) |
           static_cast<std::uint64_t>(std::ldexp(fraction, format.mantissa));
  }
  std::memcpy(to, &bits, format.size);
}
inline double get(const Format& format, const std::byte* from) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, format.size);
  if (format.mantissa == 0) return static_cast<double>(bits);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << format.mantissa) - 1);
  const int exponent = static_cast<int>(bits >> format.mantissa) - format.bias;
  return std::ldexp(1 + std::ldexp(static_cast<double>(fraction), -format.mantissa), exponent);
}

/// One or two, so that any format has all sums and products of four ranks.
inline double element(int rank, std::size_t i) {
  return 1 + static_cast<double>((i * 7 + i / 5 + static_cast<std::size_t>(rank) * 3) % 2);
}

inline double combine(Operator op, int ranks, std::size_t i) {
  double result = element(0, i);
  for (int r = 1; r < ranks; ++r) {
    const double next = element(r, i);
    if (op == kSum || op == kAvg) result += next;
    if (op == kProd) result *= next;
    if (op == kMax) result = std::max(result, next);
    if (op == kMin) result = std::min(result, next);
  }
  return op == kAvg ? result / ranks : result;
}

inline void fill(const Member& self, const Format& format, std::byte* to, std::size_t count,
                 const std::function<double(std::size_t)>& value) {
  Bytes_ all(count * format.size);
  for (std::size_t i = 0; i < count; ++i) put(format, value(i), all.data() + i * format.size);
  self.upload(to, all.data(), all.size());
}

inline void expect(const Member& self, const Format& format, const std::byte* from,
                   std::size_t count, const std::function<double(std::size_t)>& value,
                   bool rounds = false) {
  const Bytes_ all = self.got<std::byte>(count * format.size, from);
  for (std::size_t i = 0; i < count; ++i) {
    double want = value(i);
    if (rounds && format.mantissa == 0) want = std::floor(want);
    const double slack = rounds && format.mantissa > 0 ? std::ldexp(want, -format.mantissa) : 0;
    ASSERT_NEAR(get(format, all.data() + i * format.size), want, slack)
        << "type " << format.type << ", rank " << self.rank << ", element " << i << " of " << count;
  }
}

}  // namespace gdrx::nccl
