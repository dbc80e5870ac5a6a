// SPDX-License-Identifier: Apache-2.0
// A call that gdrx has and the program waits for by a request of MPI's.
#pragma once

#include <array>
#include <vector>

#include "mpi/communicator.hpp"
#include "mpi/plan.hpp"

namespace gdrx::mpi {

struct Pending {
  State* state = nullptr;
  gdrxRequest_t request = nullptr;
  Work work;
  MPI_Datatype own_type = MPI_DATATYPE_NULL;  // the program may free its type before the end
  std::vector<long> own_lists;                // counts and places, which Fortran's binding may free
  const char* why = nullptr;                  // it failed
  std::array<char, 256> text{};               // `why`, where that is a communicator's
  gdrxResult_t end = gdrxSuccess;             // which had ended so
  int error = MPI_SUCCESS;
  bool active = false;  // started and not done; of a persistent call, under pending_mutex()
  int tag = 0;  // of a persistent call: what MPI's request receives; else it is a generalized one
};

/// A type that gdrx needs after the program has freed its own. Made anew: a duplicate would have
/// the program's attributes, and call it for each of them. Throws where MPI makes none.
MPI_Datatype own_type_of(MPI_Datatype type);
/// The counts and places of a side move into `kept`, which has room for them.
void keep_lists(Side& side, std::vector<long>& kept);

/// Under pending_mutex(): whoever asks for `handle` drives the call that begins now, or it did not.
/// May throw std::bad_alloc.
void expect(MPI_Request handle, Pending& one);
void expect_no_more(MPI_Request handle, Pending& one) noexcept;

/// MPI's request of a persistent call is told that the call is done.
void complete_persistent(int tag, bool failed) noexcept;

}  // namespace gdrx::mpi
