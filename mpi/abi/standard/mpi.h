// SPDX-License-Identifier: Apache-2.0
// What this folder's library needs of an mpi.h of MPI 5's binary interface. It is our own, so that
// every package of gdrx serves programs of that interface, wherever it was built.
#pragma once

#include <cstdint>

#include "mpi/abi/standard/types.h"
#include "mpi/abi/standard/values.h"

#define GDRX_CONSTANT(type, name, value) \
  inline type const name = reinterpret_cast<type>(std::intptr_t{value});
GDRX_MPI_HANDLES(GDRX_CONSTANT)
GDRX_MPI_POINTERS(GDRX_CONSTANT)
#undef GDRX_CONSTANT
#define GDRX_CONSTANT(type, name, value) inline constexpr type name = value;
GDRX_MPI_NUMBERS(GDRX_CONSTANT)
#undef GDRX_CONSTANT

#include "mpi/abi/functions.h"
