// SPDX-License-Identifier: Apache-2.0
// MPI's predefined types and operators as gdrx's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "gdrx/gdrx_types.h"
#include "mpi/library.hpp"

namespace gdrx::mpi {

/// What MPI lets a type be reduced by.
enum class Family : std::uint8_t {
  none,
  integer,
  fortran_integer,
  real,
  complex,
  logical,
  byte,
  pair
};

struct Type {
  std::size_t size = 0;       // of its signature
  std::ptrdiff_t extent = 0;  // from one to the next
  bool plain = false;         // elements behind one another are one piece of memory
  Family family = Family::none;
  gdrxDataType_t gdrx = gdrxByte;
};

/// Null: it is no type that MPI itself has. They stay.
const Type* predefined(MPI_Datatype handle) noexcept;
/// Any type of the program's. Empty: it has no size that fits.
std::optional<Type> type_of(MPI_Datatype handle) noexcept;
/// Empty: it is not predefined, or gdrx has no such operator.
std::optional<gdrxRedOp_t> operator_of(MPI_Op handle) noexcept;
/// Whether MPI has this operator for types of the family.
bool takes(Family family, gdrxRedOp_t op) noexcept;

}  // namespace gdrx::mpi
