// SPDX-License-Identifier: Apache-2.0
// What calls of many blocks touch that gdrx never takes: of neighbours, and with a type a rank.
#pragma once

#include "mpi/call.hpp"
#include "mpi/copies.hpp"

namespace gdrx::mpi {

/// How many blocks come in and go out: of neighbours, else one a rank. Both 0: MPI says what is
/// wrong with the communicator.
struct Blocks {
  int in = 0;
  int out = 0;
};
Blocks neighbors_of(MPI_Comm comm) noexcept;
Blocks ranks_of(MPI_Comm comm) noexcept;

/// `blocks` blocks, one behind another or at places.
Span span_of(MPI_Datatype type, std::ptrdiff_t count, int blocks) noexcept;
Span span_of(MPI_Datatype type, List counts, List places, int blocks) noexcept;
/// Each of a type of its own, at places in bytes.
Span span_of(const MPI_Datatype* types, List counts, List places, int blocks) noexcept;

}  // namespace gdrx::mpi
