// SPDX-License-Identifier: Apache-2.0
// Conversions against plain arithmetic on every value there is.
#include "collectives/reduce/narrow_float.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gdrx::reduce {
namespace {

// sign, exponent and mantissa by ldexp; `special`: the top exponent is infinity and NaN.
double plain(unsigned bits, int exponent_bits, int mantissa_bits, bool special) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const unsigned mantissa = bits & ((1u << mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const double sign = (bits >> (exponent_bits + mantissa_bits) & 1) != 0 ? -1 : 1;
  if (special && exponent == (1 << exponent_bits) - 1) {
    return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1u << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

void expect_same(double got, double expected, unsigned bits) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << bits;
  } else {
    EXPECT_EQ(got, expected) << bits;
    EXPECT_EQ(std::signbit(got), std::signbit(expected)) << bits;
  }
}

TEST(NarrowFloat, EveryValueBecomesTheRightFloat) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    expect_same(half_to_float(static_cast<std::uint16_t>(bits)), plain(bits, 5, 10, true), bits);
    expect_same(bfloat16_to_float(static_cast<std::uint16_t>(bits)), plain(bits, 8, 7, true), bits);
  }
  for (unsigned bits = 0; bits < 256; ++bits) {
    const bool nan = (bits & 0x7f) == 0x7f;
    expect_same(e4m3_to_float(static_cast<std::uint8_t>(bits)),
                nan ? std::nan("") : plain(bits, 4, 3, false), bits);
    expect_same(e5m2_to_float(static_cast<std::uint8_t>(bits)), plain(bits, 5, 2, true), bits);
  }
}

// A bias greater by one halves every value.
TEST(NarrowFloat, EveryFnuzValueBecomesTheRightFloat) {
  for (unsigned bits = 0; bits < 256; ++bits) {
    const bool nan = bits == 0x80;
    expect_same(e4m3fnuz_to_float(static_cast<std::uint8_t>(bits)),
                nan ? std::nan("") : plain(bits, 4, 3, false) / 2, bits);
    expect_same(e5m2fnuz_to_float(static_cast<std::uint8_t>(bits)),
                nan ? std::nan("") : plain(bits, 5, 2, false) / 2, bits);
  }
}

// Rounding: every value comes back, a point between two goes to the nearer, a tie to the even one.
template <class Bits, class ToFloat, class FromFloat>
void expect_rounding(unsigned last_finite, ToFloat to_float, FromFloat from_float) {
  for (unsigned bits = 0; bits < last_finite; ++bits) {
    const auto low = to_float(static_cast<Bits>(bits));
    const auto high = to_float(static_cast<Bits>(bits + 1));
    EXPECT_EQ(from_float(low), bits);
    const float middle = static_cast<float>((static_cast<double>(low) + high) / 2);
    EXPECT_EQ(from_float(middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    EXPECT_EQ(from_float(std::nextafter(middle, 0.0F)), bits) << bits;
    EXPECT_EQ(from_float(std::nextafter(middle, HUGE_VALF)), bits + 1) << bits;
    EXPECT_EQ(from_float(-low) & static_cast<Bits>(~(Bits{1} << (8 * sizeof(Bits) - 1))), bits);
  }
}

TEST(NarrowFloat, RoundsToNearestEven) {
  expect_rounding<std::uint16_t>(0x7bff, half_to_float, float_to_half);
  expect_rounding<std::uint8_t>(0x7e, e4m3_to_float, float_to_e4m3);
  expect_rounding<std::uint8_t>(0x7b, e5m2_to_float, float_to_e5m2);
  expect_rounding<std::uint8_t>(0x7f, e4m3fnuz_to_float, float_to_e4m3fnuz);
  expect_rounding<std::uint8_t>(0x7f, e5m2fnuz_to_float, float_to_e5m2fnuz);
}

TEST(NarrowFloat, TreatsWhatDoesNotFit) {
  EXPECT_EQ(float_to_half(65520.0F), 0x7c00);
  EXPECT_EQ(float_to_half(65519.0F), 0x7bff);
  EXPECT_EQ(float_to_e4m3(1e9F), 0x7e);  // saturates, as CUDA's conversion does
  EXPECT_EQ(float_to_e5m2(HUGE_VALF), 0x7b);
  EXPECT_EQ(float_to_bfloat16(HUGE_VALF), 0x7f80);
  EXPECT_EQ(float_to_e4m3fnuz(-HUGE_VALF), 0xff);
  EXPECT_EQ(float_to_e5m2fnuz(1e9F), 0x7f);
  EXPECT_EQ(float_to_e4m3fnuz(-0.0F), 0) << "there is no negative zero";
  EXPECT_EQ(float_to_e5m2fnuz(-1e-9F), 0);
  EXPECT_EQ(float_to_e4m3fnuz(std::nanf("")), 0x80);
  EXPECT_EQ(float_to_e5m2fnuz(-std::nanf("")), 0x80);
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(std::nanf("")))));
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::nanf("")))));
  EXPECT_TRUE(std::isnan(e4m3_to_float(float_to_e4m3(std::nanf("")))));
}

}  // namespace
}  // namespace gdrx::reduce
