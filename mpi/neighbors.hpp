// SPDX-License-Identifier: Apache-2.0
// How many blocks a call has that gdrx never takes.
#pragma once

#include "mpi/library.hpp"

namespace gdrx::mpi {

/// How many blocks come in and go out: of neighbours, else one a rank. Both 0: MPI says what is
/// wrong with the communicator.
struct Degrees {
  int in = 0;
  int out = 0;
};
Degrees neighbors_of(MPI_Comm comm) noexcept;
Degrees ranks_of(MPI_Comm comm) noexcept;

}  // namespace gdrx::mpi
