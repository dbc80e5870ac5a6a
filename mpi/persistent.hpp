// SPDX-License-Identifier: Apache-2.0
// Persistent calls. What their requests match is settled when they are made, so ranks may start
// them in different orders: each has a communicator of gdrx's of its own.
#pragma once

#include "mpi/communicator.hpp"

namespace gdrx::mpi {

/// Collective, and blocks. `taken`: *call.request is made; else MPI has the call, on every rank.
Verdict make_persistent(const Call& call, State& parent) noexcept;

/// Whether this process has any that is taken.
bool any_persistent() noexcept;
bool is_persistent(MPI_Request request) noexcept;
/// Of one of ours: MPI's code.
int start_persistent(MPI_Request request) noexcept;
/// Before MPI frees the request: nothing if it is not ours. Of one that was started it waits for
/// the end.
void forget_persistent(const MPI_Request* request) noexcept;
/// In MPI_Init: makes a communicator, which must not be done beside the program's calls.
void begin_persistent() noexcept;
/// In MPI_Finalize. What is started later, by a session, is refused.
void end_persistent() noexcept;

}  // namespace gdrx::mpi
