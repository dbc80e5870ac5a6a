// SPDX-License-Identifier: Apache-2.0
// What this folder's library needs of MPICH's mpi.h. It is our own, so that every package of gdrx
// serves programs of MPICH and Intel MPI, wherever it was built.
#pragma once

#include <cstdint>

#include "mpi/abi/mpich/types.h"
#include "mpi/abi/mpich/values.h"

#define GDRX_CONSTANT(type, name, value) inline constexpr type name = static_cast<type>(value);
GDRX_MPI_HANDLES(GDRX_CONSTANT)
GDRX_MPI_NUMBERS(GDRX_CONSTANT)
#undef GDRX_CONSTANT
#define GDRX_CONSTANT(type, name, value) \
  inline type const name = reinterpret_cast<type>(std::intptr_t{value});
GDRX_MPI_POINTERS(GDRX_CONSTANT)
#undef GDRX_CONSTANT

#include "mpi/abi/functions.h"
