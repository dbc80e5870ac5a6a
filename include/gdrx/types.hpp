// SPDX-License-Identifier: Apache-2.0
// Strong ids, units, element types and reduction operators: the words that every layer shares.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gdrx {

enum class Rank : std::int32_t {};

constexpr std::int32_t index(Rank rank) noexcept { return static_cast<std::int32_t>(rank); }

using Bytes = std::uint64_t;

/// Values are those of gdrxDataType_t in gdrx.h and go over the wire: append only.
enum class DataType : std::uint8_t {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  float8_e4m3,
  float8_e5m2,
  int16,
  uint16,
  boolean,
  complex64,
  complex128,
  long_double,
  byte,
  float8_e4m3fnuz,
  float8_e5m2fnuz,
  float_int,
  double_int,
  long_int,
  int_int,
  short_int,
  long_double_int,
};
inline constexpr std::size_t kDataTypeCount = 27;

/// Values are those of gdrxRedOp_t in gdrx.h and go over the wire: append only.
enum class ReduceOp : std::uint8_t {
  sum,
  prod,
  min,
  max,
  avg,
  land,
  lor,
  lxor,
  band,
  bor,
  bxor,
  minloc,
  maxloc,
  premul_sum,  // from here on a program makes them, and gdrxRedOp_t has a number a piece
  user,
};
inline constexpr std::size_t kReduceOpCount = 15;
inline constexpr std::size_t kNamedOpCount = 13;  // that need not be made

/// Types that take the same operators.
enum class TypeClass : std::uint8_t { integer, floating, complex, boolean, byte, pair };
inline constexpr std::size_t kTypeClassCount = 6;

/// The first so many types and operators have kernels on GPUs. They are those of NCCL.
inline constexpr std::size_t kGpuTypeCount = 12;
inline constexpr std::size_t kGpuOpCount = 5;
constexpr bool has_kernels(DataType type, ReduceOp op) noexcept {
  return static_cast<std::size_t>(type) < kGpuTypeCount &&
         static_cast<std::size_t>(op) < kGpuOpCount;
}

/// Which collective a call is: a row each of collectives.def. Goes over the wire.
enum class Collective : std::uint8_t {
#define GDRX_COLLECTIVE(value, ...) value,
#include "gdrx/collectives.def"
};
inline constexpr std::size_t kCollectiveCount = 0
#define GDRX_COLLECTIVE(...) +1
#include "gdrx/collectives.def"
    ;

enum class MemoryKind : std::uint8_t { host, cuda };

std::size_t size_of(DataType type) noexcept;
TypeClass class_of(DataType type) noexcept;
/// Whether elements of the type can be reduced so.
bool takes(DataType type, ReduceOp op) noexcept;
/// "sum, prod, avg, premulsum, user": what a type takes.
std::string operators_of(DataType type);
/// Whether GPUs have no such type: it is of host memory alone.
constexpr bool is_host_only(DataType type) noexcept {
  return type == DataType::long_double || type == DataType::long_double_int;
}
std::string_view to_string(DataType type) noexcept;  // "float", "bfloat16": nccl-tests' words
std::string_view to_string(ReduceOp op) noexcept;
std::optional<DataType> parse_data_type(std::string_view name) noexcept;
/// Of an operator that need not be made.
std::optional<ReduceOp> parse_reduce_op(std::string_view name) noexcept;

}  // namespace gdrx
