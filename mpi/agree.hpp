// SPDX-License-Identifier: Apache-2.0
// What has to be the same on every rank before any call is taken.
#pragma once

#include "mpi/library.hpp"

namespace gdrx::mpi {

/// Collective over MPI_COMM_WORLD, behind MPI's own MPI_Init, whatever GDRX_MPI is.
void agree_in_init() noexcept;
/// Whether the ranks of MPI_COMM_WORLD are known to have the same GDRX_MPI.
bool ranks_agree() noexcept;
/// Whether all ranks of a communicator are of this rank's MPI_COMM_WORLD: others, that were
/// spawned, may have another GDRX_MPI.
bool is_of_this_world(MPI_Comm comm, int size) noexcept;

}  // namespace gdrx::mpi
