// SPDX-License-Identifier: Apache-2.0
#include "mpi/types.hpp"

#include <utility>

namespace gdrx::mpi {
namespace {

struct Row {
  MPI_Datatype handle;
  Family family;
  gdrxDataType_t type;
  std::size_t bytes;  // of gdrx's type: one of another size is not it
};

// By handle, found in a look or two: a hook that passes a call on has 30 ns.
template <class Value, std::size_t kSlots>
class HandleTable {
 public:
  void add(std::uintptr_t handle, const Value& value) noexcept {
    std::size_t at = place(handle);
    while (slots_[at].handle != 0 && slots_[at].handle != handle) at = (at + 1) % kSlots;
    slots_[at] = {handle, value};
  }
  const Value* find(std::uintptr_t handle) const noexcept {
    for (std::size_t at = place(handle); slots_[at].handle != 0; at = (at + 1) % kSlots) {
      if (slots_[at].handle == handle) return &slots_[at].value;
    }
    return nullptr;
  }

 private:
  struct Slot {
    std::uintptr_t handle = 0;
    Value value{};
  };
  static std::size_t place(std::uintptr_t handle) noexcept {
    return (handle * 0x9E3779B97F4A7C15U >> 40U) % kSlots;
  }
  std::array<Slot, kSlots> slots_{};
};

using Types = HandleTable<Type, 256>;
using Operators = HandleTable<gdrxRedOp_t, 64>;

std::optional<Type> measure(MPI_Datatype handle) noexcept {
  MPI_Count size = 0;  // an int has no more than 2 GiB
  MPI_Aint lowest = 0;
  MPI_Aint extent = 0;
  if (real::Type_size_x(handle, &size) != MPI_SUCCESS || size < 0 ||
      real::Type_get_extent(handle, &lowest, &extent) != MPI_SUCCESS) {
    return std::nullopt;
  }
  return Type{.size = static_cast<std::size_t>(size), .extent = extent};
}

void add(Types& types, const Row& row) noexcept {
  // One that this MPI, or its Fortran, does not have.
  if (number_of(row.handle) == 0 || row.handle == MPI_DATATYPE_NULL) return;
  auto type = measure(row.handle);
  if (!type || type->size == 0) return;
  type->plain = static_cast<std::ptrdiff_t>(type->size) == type->extent;
  if (static_cast<std::ptrdiff_t>(row.bytes) == type->extent) {
    type->family = row.family;
    type->gdrx = row.type;
  }
  types.add(number_of(row.handle), *type);
}

struct FloatInt {
  float value;
  int index;
};
struct DoubleInt {
  double value;
  int index;
};
struct LongInt {
  long value;
  int index;
};
struct ShortInt {
  short value;
  int index;
};
struct LongDoubleInt {
  long double value;
  int index;
};

Types make_types() noexcept {
  const Row rows[] = {
      {MPI_SIGNED_CHAR, Family::integer, gdrxInt8, 1},
      {MPI_UNSIGNED_CHAR, Family::integer, gdrxUint8, 1},
      {MPI_SHORT, Family::integer, gdrxInt16, 2},
      {MPI_UNSIGNED_SHORT, Family::integer, gdrxUint16, 2},
      {MPI_INT, Family::integer, gdrxInt32, 4},
      {MPI_UNSIGNED, Family::integer, gdrxUint32, 4},
      {MPI_LONG, Family::integer, gdrxInt64, 8},
      {MPI_UNSIGNED_LONG, Family::integer, gdrxUint64, 8},
      {MPI_LONG_LONG_INT, Family::integer, gdrxInt64, 8},
      {MPI_UNSIGNED_LONG_LONG, Family::integer, gdrxUint64, 8},
      {MPI_INT8_T, Family::integer, gdrxInt8, 1},
      {MPI_UINT8_T, Family::integer, gdrxUint8, 1},
      {MPI_INT16_T, Family::integer, gdrxInt16, 2},
      {MPI_UINT16_T, Family::integer, gdrxUint16, 2},
      {MPI_INT32_T, Family::integer, gdrxInt32, 4},
      {MPI_UINT32_T, Family::integer, gdrxUint32, 4},
      {MPI_INT64_T, Family::integer, gdrxInt64, 8},
      {MPI_UINT64_T, Family::integer, gdrxUint64, 8},
      {MPI_AINT, Family::integer, gdrxInt64, 8},
      {MPI_OFFSET, Family::integer, gdrxInt64, 8},
      {MPI_COUNT, Family::integer, gdrxInt64, 8},
      {MPI_FLOAT, Family::real, gdrxFloat32, 4},
      {MPI_DOUBLE, Family::real, gdrxFloat64, 8},
      {MPI_LONG_DOUBLE, Family::real, gdrxLongDouble, sizeof(long double)},
      {MPI_C_FLOAT_COMPLEX, Family::complex, gdrxComplex64, 8},
      {MPI_C_DOUBLE_COMPLEX, Family::complex, gdrxComplex128, 16},
      {MPI_CXX_FLOAT_COMPLEX, Family::complex, gdrxComplex64, 8},
      {MPI_CXX_DOUBLE_COMPLEX, Family::complex, gdrxComplex128, 16},
      {MPI_C_BOOL, Family::logical, gdrxBool, 1},
      {MPI_CXX_BOOL, Family::logical, gdrxBool, 1},
      {MPI_BYTE, Family::byte, gdrxByte, 1},
      {MPI_FLOAT_INT, Family::pair, gdrxFloatInt, sizeof(FloatInt)},
      {MPI_DOUBLE_INT, Family::pair, gdrxDoubleInt, sizeof(DoubleInt)},
      {MPI_LONG_INT, Family::pair, gdrxLongInt, sizeof(LongInt)},
      {MPI_2INT, Family::pair, gdrx2Int, 2 * sizeof(int)},
      {MPI_SHORT_INT, Family::pair, gdrxShortInt, sizeof(ShortInt)},
      {MPI_LONG_DOUBLE_INT, Family::pair, gdrxLongDoubleInt, sizeof(LongDoubleInt)},
      // Fortran's, as its compiler's default is. A LOGICAL is an integer that is 0 or 1.
      {MPI_INTEGER, Family::fortran_integer, gdrxInt32, 4},
      {MPI_INTEGER1, Family::fortran_integer, gdrxInt8, 1},
      {MPI_INTEGER2, Family::fortran_integer, gdrxInt16, 2},
      {MPI_INTEGER4, Family::fortran_integer, gdrxInt32, 4},
      {MPI_INTEGER8, Family::fortran_integer, gdrxInt64, 8},
      {MPI_REAL, Family::real, gdrxFloat32, 4},
      {MPI_REAL4, Family::real, gdrxFloat32, 4},
      {MPI_REAL8, Family::real, gdrxFloat64, 8},
      {MPI_DOUBLE_PRECISION, Family::real, gdrxFloat64, 8},
      {MPI_COMPLEX, Family::complex, gdrxComplex64, 8},
      {MPI_COMPLEX8, Family::complex, gdrxComplex64, 8},
      {MPI_COMPLEX16, Family::complex, gdrxComplex128, 16},
      {MPI_DOUBLE_COMPLEX, Family::complex, gdrxComplex128, 16},
      {MPI_LOGICAL, Family::logical, gdrxInt32, 4},
      {MPI_2INTEGER, Family::pair, gdrx2Int, 2 * sizeof(int)},
      // Moved, not reduced.
      {MPI_CHAR, Family::none, gdrxByte, 0},
      {MPI_WCHAR, Family::none, gdrxByte, 0},
      {MPI_CHARACTER, Family::none, gdrxByte, 0},
      {MPI_C_LONG_DOUBLE_COMPLEX, Family::none, gdrxByte, 0},
      {MPI_CXX_LONG_DOUBLE_COMPLEX, Family::none, gdrxByte, 0},
      {MPI_2REAL, Family::none, gdrxByte, 0},
      {MPI_2DOUBLE_PRECISION, Family::none, gdrxByte, 0},
  };
  Types types;
  for (const Row& row : rows) add(types, row);
  return types;
}

Operators make_operators() noexcept {
  const std::pair<MPI_Op, gdrxRedOp_t> rows[] = {
      {MPI_SUM, gdrxSum},   {MPI_PROD, gdrxProd},     {MPI_MIN, gdrxMin},
      {MPI_MAX, gdrxMax},   {MPI_LAND, gdrxLand},     {MPI_LOR, gdrxLor},
      {MPI_LXOR, gdrxLxor}, {MPI_BAND, gdrxBand},     {MPI_BOR, gdrxBor},
      {MPI_BXOR, gdrxBxor}, {MPI_MINLOC, gdrxMinloc}, {MPI_MAXLOC, gdrxMaxloc},
  };
  Operators operators;
  for (const auto& [handle, op] : rows) {
    if (number_of(handle) != 0) operators.add(number_of(handle), op);
  }
  return operators;
}

}  // namespace

const Type* predefined(MPI_Datatype handle) noexcept {
  static const Types kTypes = make_types();
  return kTypes.find(number_of(handle));
}

std::optional<Type> type_of(MPI_Datatype handle) noexcept {
  if (const Type* const known = predefined(handle)) return *known;
  static const MPI_Datatype kNone = MPI_DATATYPE_NULL;
  if (handle == kNone || number_of(handle) == 0) return std::nullopt;  // MPI says so
  return measure(handle);
}

std::optional<gdrxRedOp_t> operator_of(MPI_Op handle) noexcept {
  static const Operators kOperators = make_operators();
  const gdrxRedOp_t* const known = kOperators.find(number_of(handle));
  return known == nullptr ? std::nullopt : std::optional(*known);
}

bool takes(Family family, gdrxRedOp_t op) noexcept {
  const bool logical = op >= gdrxLand && op <= gdrxLxor;
  const bool bits = op >= gdrxBand && op <= gdrxBxor;
  switch (family) {
    case Family::none:
      return false;
    case Family::integer:
      return op < gdrxAvg || logical || bits;
    case Family::fortran_integer:
      return op < gdrxAvg || bits;
    case Family::real:
      return op < gdrxAvg;
    case Family::complex:
      return op < gdrxMin;
    case Family::logical:
      return logical;
    case Family::byte:
      return bits;
    case Family::pair:
      return op == gdrxMinloc || op == gdrxMaxloc;
  }
  return false;
}

}  // namespace gdrx::mpi
