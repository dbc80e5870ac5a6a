// SPDX-License-Identifier: Apache-2.0
#include "gdrx/types.hpp"

namespace gdrx {
namespace {

struct TypeFacts {
  std::string_view name;
  std::size_t size;
};

constexpr std::array<TypeFacts, kDataTypeCount> kTypes{{
    {"int8", 1},
    {"uint8", 1},
    {"int32", 4},
    {"uint32", 4},
    {"int64", 8},
    {"uint64", 8},
    {"half", 2},
    {"bfloat16", 2},
    {"float", 4},
    {"double", 8},
    {"f8e4m3", 1},
    {"f8e5m2", 1},
}};

constexpr std::array<std::string_view, kReduceOpCount> kOps{"sum", "prod", "min", "max", "avg"};

constexpr std::array<std::string_view, kCollectiveCount> kCollectives{
    "allReduce", "reduceScatter", "allGather", "broadcast", "reduce", "barrier", "sendRecv"};

}  // namespace

std::size_t size_of(DataType type) noexcept {
  return kTypes.at(static_cast<std::size_t>(type)).size;
}

std::string_view to_string(DataType type) noexcept {
  const auto i = static_cast<std::size_t>(type);
  return i < kTypes.size() ? kTypes[i].name : "unknown type";
}

std::string_view to_string(ReduceOp op) noexcept {
  const auto i = static_cast<std::size_t>(op);
  return i < kOps.size() ? kOps[i] : "unknown op";
}

std::string_view to_string(Collective collective) noexcept {
  const auto i = static_cast<std::size_t>(collective);
  return i < kCollectives.size() ? kCollectives[i] : "unknown collective";
}

std::optional<DataType> parse_data_type(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<DataType>(i);
  }
  return std::nullopt;
}

std::optional<ReduceOp> parse_reduce_op(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kOps.size(); ++i) {
    if (kOps[i] == name) return static_cast<ReduceOp>(i);
  }
  return std::nullopt;
}

}  // namespace gdrx
