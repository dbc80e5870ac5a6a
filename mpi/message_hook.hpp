// SPDX-License-Identifier: Apache-2.0
// Hooks of calls whose buffers may be on a GPU, and which MPI has. Rows say how.
#pragma once

#include "mpi/copied_requests.hpp"

// COPY: what is done with the arguments, by `copies`. PASS: the call of `real_one`, within
// copies.done().
#define GDRX_COPIED_AS(name, PARAMETERS, ARGUMENTS, COPY, PASS) \
  GDRX_MPIS int name PARAMETERS {                               \
    static constinit Real<decltype(::name)> real_one(#name);    \
    if (!copies_for_mpi()) [[likely]]                           \
      return real_one ARGUMENTS;                                \
    Copies copies;                                              \
    COPY;                                                       \
    return PASS;                                                \
  }
#define GDRX_COPIED(name, PARAMETERS, ARGUMENTS, COPY, PASS)    \
  GDRX_COPIED_AS(MPI_##name, PARAMETERS, ARGUMENTS, COPY, PASS) \
  GDRX_COPIED_AS(PMPI_##name, PARAMETERS, ARGUMENTS, COPY, PASS)

// A call that blocks, one that has a request, and one that makes a persistent request.
#define GDRX_BLOCKING(name, PARAMETERS, ARGUMENTS, COPY) \
  GDRX_COPIED(name, PARAMETERS, ARGUMENTS, COPY, copies.done(real_one ARGUMENTS))
#define GDRX_REQUESTING(name, PARAMETERS, ARGUMENTS, COPY) \
  GDRX_COPIED(name, PARAMETERS, ARGUMENTS, COPY, copies.done(real_one ARGUMENTS, q, false))
#define GDRX_PERSISTING(name, PARAMETERS, ARGUMENTS, COPY) \
  GDRX_COPIED(name, PARAMETERS, ARGUMENTS, COPY, copies.done(real_one ARGUMENTS, q, true))
