// SPDX-License-Identifier: Apache-2.0
// Strong ids, units, element types and reduction operators: the words that every layer shares.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
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
};
inline constexpr std::size_t kDataTypeCount = 12;

/// Values are those of gdrxRedOp_t in gdrx.h and go over the wire: append only.
enum class ReduceOp : std::uint8_t { sum, prod, min, max, avg };
inline constexpr std::size_t kReduceOpCount = 5;

/// Which collective a call is. Goes over the wire: append only.
enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  barrier,
  send_recv,
};
inline constexpr std::size_t kCollectiveCount = 7;

enum class MemoryKind : std::uint8_t { host, cuda };

std::size_t size_of(DataType type) noexcept;
std::string_view to_string(DataType type) noexcept;  // "float", "bfloat16": nccl-tests' words
std::string_view to_string(ReduceOp op) noexcept;
std::string_view to_string(Collective collective) noexcept;
std::optional<DataType> parse_data_type(std::string_view name) noexcept;
std::optional<ReduceOp> parse_reduce_op(std::string_view name) noexcept;

}  // namespace gdrx
