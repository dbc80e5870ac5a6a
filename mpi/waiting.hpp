// SPDX-License-Identifier: Apache-2.0
// What a call does while it waits for other ranks. MPI must go on meanwhile: another rank may wait
// for a message of this one's before it comes to the call, as the standard lets it.
#pragma once

#include <cstdint>

namespace gdrx::mpi {

/// gdrx's WaitFunction. `rounds` in a row have moved nothing.
void while_waiting(void* user, std::uint64_t rounds) noexcept;

}  // namespace gdrx::mpi
