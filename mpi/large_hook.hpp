// SPDX-License-Identifier: Apache-2.0
// Hooks of calls with counts of 64 bits whose buffers may be on a GPU, and which MPI has: by those
// of ints where an MPI lacks them (MPICH 3).
#pragma once

#include "mpi/message_hook.hpp"
#include "mpi/narrow.hpp"

// NARROW, PASSED: the call with ints, where FITS.
#define GDRX_LARGE_COPIED_AS(name, PARAMETERS, ARGUMENTS, NARROW, PASSED, FITS, COPY, DONE) \
  GDRX_MPIS int name##_c PARAMETERS {                                                       \
    static constinit Real<decltype(::name##_c)> real_one(#name "_c");                       \
    static constinit Real<int NARROW> narrow_one(#name);                                    \
    Copies copies;                                                                          \
    if (copies_for_mpi()) [[unlikely]]                                                      \
      COPY;                                                                                 \
    const int result = real_one.exists() ? real_one ARGUMENTS                               \
                       : FITS            ? narrow_one PASSED                                \
                                         : refuse_count(#name);                                        \
    return copies.done DONE;                                                                \
  }
#define GDRX_LARGE_COPIED(name, ...)            \
  GDRX_LARGE_COPIED_AS(MPI_##name, __VA_ARGS__) \
  GDRX_LARGE_COPIED_AS(PMPI_##name, __VA_ARGS__)
