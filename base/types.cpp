// SPDX-License-Identifier: Apache-2.0
#include "gdrx/types.hpp"

namespace gdrx {
namespace {

struct TypeFacts {
  std::string_view name;
  std::size_t size;
  TypeClass type_class{};
};

// C's layout of MPI's pairs.
template <class T>
struct Pair {
  T value;
  int index;
};

constexpr std::array<TypeFacts, kDataTypeCount> kTypes{{
    {"int8", 1, TypeClass::integer},
    {"uint8", 1, TypeClass::integer},
    {"int32", 4, TypeClass::integer},
    {"uint32", 4, TypeClass::integer},
    {"int64", 8, TypeClass::integer},
    {"uint64", 8, TypeClass::integer},
    {"half", 2, TypeClass::floating},
    {"bfloat16", 2, TypeClass::floating},
    {"float", 4, TypeClass::floating},
    {"double", 8, TypeClass::floating},
    {"f8e4m3", 1, TypeClass::floating},
    {"f8e5m2", 1, TypeClass::floating},
    {"int16", 2, TypeClass::integer},
    {"uint16", 2, TypeClass::integer},
    {"bool", 1, TypeClass::boolean},
    {"complex64", 8, TypeClass::complex},
    {"complex128", 16, TypeClass::complex},
    {"longdouble", sizeof(long double), TypeClass::floating},
    {"byte", 1, TypeClass::byte},
    {"f8e4m3fnuz", 1, TypeClass::floating},
    {"f8e5m2fnuz", 1, TypeClass::floating},
    {"floatint", sizeof(Pair<float>), TypeClass::pair},
    {"doubleint", sizeof(Pair<double>), TypeClass::pair},
    {"longint", sizeof(Pair<long>), TypeClass::pair},
    {"2int", sizeof(Pair<int>), TypeClass::pair},
    {"shortint", sizeof(Pair<short>), TypeClass::pair},
    {"longdoubleint", sizeof(Pair<long double>), TypeClass::pair},
}};

constexpr std::array<std::string_view, kReduceOpCount> kOps{
    "sum",  "prod", "min",  "max",    "avg",    "land",      "lor", "lxor",
    "band", "bor",  "bxor", "minloc", "maxloc", "premulsum", "user"};

template <class... Ops>
constexpr std::uint32_t set_of(Ops... ops) {
  return ((1U << static_cast<unsigned>(ops)) | ...);
}

// In the order of TypeClass. As MPI's standard (6.9.2) has it, with averages and scaled sums.
using enum ReduceOp;
constexpr std::array<std::uint32_t, kTypeClassCount> kTakes{
    set_of(sum, prod, min, max, avg, land, lor, lxor, band, bor, bxor, premul_sum, user),
    set_of(sum, prod, min, max, avg, premul_sum, user),
    set_of(sum, prod, avg, premul_sum, user),
    set_of(land, lor, lxor, band, bor, bxor, user),
    set_of(band, bor, bxor, user),
    set_of(minloc, maxloc, user),
};

}  // namespace

std::size_t size_of(DataType type) noexcept {
  return kTypes.at(static_cast<std::size_t>(type)).size;
}

TypeClass class_of(DataType type) noexcept {
  return kTypes.at(static_cast<std::size_t>(type)).type_class;
}

bool takes(DataType type, ReduceOp op) noexcept {
  const std::uint32_t ops = kTakes.at(static_cast<std::size_t>(class_of(type)));
  return (ops >> static_cast<unsigned>(op) & 1) != 0;
}

std::string operators_of(DataType type) {
  std::string names;
  for (std::size_t i = 0; i < kOps.size(); ++i) {
    if (!takes(type, static_cast<ReduceOp>(i))) continue;
    names.append(names.empty() ? "" : ", ").append(kOps[i]);
  }
  return names;
}

std::string_view to_string(DataType type) noexcept {
  const auto i = static_cast<std::size_t>(type);
  return i < kTypes.size() ? kTypes[i].name : "unknown type";
}

std::string_view to_string(ReduceOp op) noexcept {
  const auto i = static_cast<std::size_t>(op);
  return i < kOps.size() ? kOps[i] : "unknown op";
}

std::optional<DataType> parse_data_type(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<DataType>(i);
  }
  return std::nullopt;
}

std::optional<ReduceOp> parse_reduce_op(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kNamedOpCount; ++i) {
    if (kOps[i] == name) return static_cast<ReduceOp>(i);
  }
  return std::nullopt;
}

}  // namespace gdrx
