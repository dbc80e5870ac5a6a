// SPDX-License-Identifier: Apache-2.0
// Narrow floats on the host: to float exactly, from float by round to nearest even. Branch-light,
// so that loops over them vectorise. float8 follows CUDA's conversions with saturation to finite.
#pragma once

#include <bit>
#include <cstdint>

namespace gdrx::reduce {

inline float from_bits(std::uint32_t bits) noexcept { return std::bit_cast<float>(bits); }
inline std::uint32_t to_bits(float value) noexcept { return std::bit_cast<std::uint32_t>(value); }

// Every format below is sign, exponent, mantissa. Shifted to float's place and multiplied by the
// difference of the biases, normals and subnormals alike become right.

inline float half_to_float(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t rest = half & 0x7fffu;
  const std::uint32_t finite = to_bits(from_bits(rest << 13) * from_bits(0x77800000u));  // 2^112
  // Infinity keeps its zero mantissa; a NaN becomes quiet, as the processor's instruction does it.
  const std::uint32_t special = 0x7f800000u | rest << 13 | (rest > 0x7c00u ? 0x00400000u : 0u);
  return from_bits(sign | (rest >= 0x7c00u ? special : finite));
}

inline std::uint16_t float_to_half(float value) noexcept {
  const std::uint32_t bits = to_bits(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // A subnormal is rounded by adding a number whose last place is a half's smallest step.
  const std::uint32_t small = to_bits(from_bits(magnitude) + 0.5F) - to_bits(0.5F);
  const std::uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23)) >> 13;
  const std::uint32_t nan = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  std::uint32_t out = magnitude < 0x38800000u ? small : normal;
  out = magnitude >= 0x477ff000u ? 0x7c00u : out;  // 65520 and more round to infinity
  out = magnitude > 0x7f800000u ? nan : out;
  return static_cast<std::uint16_t>(sign | out);
}

inline float bfloat16_to_float(std::uint16_t value) noexcept {
  return from_bits(static_cast<std::uint32_t>(value) << 16);
}

inline std::uint16_t float_to_bfloat16(float value) noexcept {
  const std::uint32_t bits = to_bits(value);
  const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>(nan ? (bits >> 16 | 0x40u) : rounded);
}

/// OCP "fn" form: no infinity, 0x7f is NaN, the largest number 448.
inline float e4m3_to_float(std::uint8_t value) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(value & 0x80u) << 24;
  const std::uint32_t rest = value & 0x7fu;
  const std::uint32_t finite = to_bits(from_bits(rest << 20) * from_bits(0x7b800000u));  // 2^120
  return from_bits(sign | (rest == 0x7fu ? 0x7fc00000u : finite));
}

inline std::uint8_t float_to_e4m3(float value) noexcept {
  const std::uint32_t bits = to_bits(value);
  const std::uint32_t sign = bits >> 24 & 0x80u;
  const std::uint32_t exact = bits & 0x7fffffffu;
  const std::uint32_t magnitude = exact > 0x43e00000u ? 0x43e00000u : exact;  // 448
  const std::uint32_t small = to_bits(from_bits(magnitude) + 16384.0F) - to_bits(16384.0F);
  const std::uint32_t normal = (magnitude + 0x7ffffu + (magnitude >> 20 & 1u) - (120u << 23)) >> 20;
  const std::uint32_t out = magnitude < 0x3c800000u ? small : normal;
  return static_cast<std::uint8_t>(sign | (exact > 0x7f800000u ? 0x7fu : out));
}

/// A half without its last eight bits: infinity and NaN as there.
inline float e5m2_to_float(std::uint8_t value) noexcept {
  return half_to_float(static_cast<std::uint16_t>(value << 8));
}

inline std::uint8_t float_to_e5m2(float value) noexcept {
  const std::uint32_t bits = to_bits(value);
  const std::uint32_t sign = bits >> 24 & 0x80u;
  const std::uint32_t exact = bits & 0x7fffffffu;
  const std::uint32_t magnitude = exact > 0x47600000u ? 0x47600000u : exact;  // 57344
  const std::uint32_t small = to_bits(from_bits(magnitude) + 128.0F) - to_bits(128.0F);
  const std::uint32_t normal = (magnitude + 0xfffffu + (magnitude >> 21 & 1u) - (112u << 23)) >> 21;
  const std::uint32_t out = magnitude < 0x38800000u ? small : normal;
  return static_cast<std::uint8_t>(sign | (exact > 0x7f800000u ? 0x7fu : out));
}

// The "fnuz" forms: a bias greater by one, neither infinity nor a negative zero, whose bits are
// NaN.

inline float e4m3fnuz_to_float(std::uint8_t value) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(value & 0x80u) << 24;
  const std::uint32_t rest = value & 0x7fu;
  const std::uint32_t finite = to_bits(from_bits(rest << 20) * from_bits(0x7b000000u));  // 2^119
  return from_bits(value == 0x80u ? 0x7fc00000u : sign | finite);
}

inline std::uint8_t float_to_e4m3fnuz(float value) noexcept {
  const std::uint32_t bits = to_bits(value);
  const std::uint32_t exact = bits & 0x7fffffffu;
  const std::uint32_t magnitude = exact > 0x43700000u ? 0x43700000u : exact;  // 240
  const std::uint32_t small = to_bits(from_bits(magnitude) + 8192.0F) - to_bits(8192.0F);
  const std::uint32_t normal = (magnitude + 0x7ffffu + (magnitude >> 20 & 1u) - (119u << 23)) >> 20;
  const std::uint32_t out = magnitude < 0x3c000000u ? small : normal;
  const std::uint32_t sign = out == 0 ? 0 : bits >> 24 & 0x80u;
  return static_cast<std::uint8_t>(exact > 0x7f800000u ? 0x80u : sign | out);
}

inline float e5m2fnuz_to_float(std::uint8_t value) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(value & 0x80u) << 24;
  const std::uint32_t rest = value & 0x7fu;
  const std::uint32_t finite = to_bits(from_bits(rest << 21) * from_bits(0x77000000u));  // 2^111
  return from_bits(value == 0x80u ? 0x7fc00000u : sign | finite);
}

inline std::uint8_t float_to_e5m2fnuz(float value) noexcept {
  const std::uint32_t bits = to_bits(value);
  const std::uint32_t exact = bits & 0x7fffffffu;
  const std::uint32_t magnitude = exact > 0x47600000u ? 0x47600000u : exact;  // 57344
  const std::uint32_t small = to_bits(from_bits(magnitude) + 64.0F) - to_bits(64.0F);
  const std::uint32_t normal = (magnitude + 0xfffffu + (magnitude >> 21 & 1u) - (111u << 23)) >> 21;
  const std::uint32_t out = magnitude < 0x38000000u ? small : normal;
  const std::uint32_t sign = out == 0 ? 0 : bits >> 24 & 0x80u;
  return static_cast<std::uint8_t>(exact > 0x7f800000u ? 0x80u : sign | out);
}

}  // namespace gdrx::reduce
