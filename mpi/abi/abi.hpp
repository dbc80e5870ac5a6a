// SPDX-License-Identifier: Apache-2.0
// What is different from one binary interface of MPI to another, beside mpi.h: each object has one
// of this folder's sources.
#pragma once

#include <array>

namespace gdrx::mpi {

struct Abi {
  const char* object;                  // the library that this is in
  const char* mpis;                    // whose programs it serves
  std::array<const char*, 2> sonames;  // of the MPI library; an empty one is none
  const char* for_all;                 // before a variable that every rank is to have
  int process_failed;                  // MPIX_ERR_PROC_FAILED; 0: there is none
  int revoked;                         // MPIX_ERR_REVOKED
};
extern const Abi kAbi;

/// Whether the library behind this one has this interface. Looked up each time.
bool has_this_abi() noexcept;

/// Whether the sizes at which gdrx is faster, that came with it, hold for the MPI behind this
/// library.
bool is_known_slower() noexcept;

/// MPI goes on with what the program has begun, and nothing else happens.
void let_mpi_go_on() noexcept;
/// In MPI_Finalize, after the last of those.
void end_going_on() noexcept;

}  // namespace gdrx::mpi
