// SPDX-License-Identifier: Apache-2.0
// The table of GDRX_MPI=explain: each collective's calls, taken and passed on, and why.
#pragma once

#include "mpi/call.hpp"

namespace gdrx::mpi {

/// Any thread.
void note_call(Kind kind, Form form, Verdict verdict, std::size_t bytes,
               std::uint64_t nanoseconds) noexcept;
/// Before MPI ends: rank 0 prints its table, once, if it was asked for.
void explain() noexcept;

}  // namespace gdrx::mpi
