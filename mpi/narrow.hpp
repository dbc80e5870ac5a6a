// SPDX-License-Identifier: Apache-2.0
// Calls whose counts have 64 bits, where MPI has none such (MPICH 3): by those of ints. A program
// asks by weak references whether there are some, and finds ours.
#pragma once

#include "mpi/call.hpp"

namespace gdrx::mpi {

/// `prefix`: MPI_ or PMPI_, of the function that has the call. What an int does not count is
/// MPI_ERR_COUNT, by the communicator's error handler. Lists of a nonblocking call are kept until
/// the program ends, equal ones once: nobody says when MPI's request is done.
int pass_on_narrow(const Call& call, const char* prefix) noexcept;

/// For a message of `name` that an int does not count: a line, and the error handler of
/// MPI_COMM_WORLD.
int refuse_count(const char* name) noexcept;

}  // namespace gdrx::mpi
