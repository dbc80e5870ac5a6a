// SPDX-License-Identifier: Apache-2.0
// Ranks that die, in MPIs that let a program go on (ULFM): MPIX_Comm_revoke and its sisters.
#pragma once

#include "mpi/communicator.hpp"

namespace gdrx::mpi {

/// MPI's own code for what has ended gdrx's communicator: that a rank has died, or that the program
/// has revoked MPI's. 0: it is something else, or MPI has no such codes.
int code_of_fault(const State& state, gdrxResult_t end) noexcept;
/// What has ended gdrx's communicator; gdrxSuccess: nothing.
gdrxResult_t end_of(const State& state) noexcept;

}  // namespace gdrx::mpi
