// SPDX-License-Identifier: Apache-2.0
// Hooks of persistent collectives that gdrx never takes: MPI 4's, and those that Open MPI 4 has
// under names of its own.
#pragma once

#include "mpi/message_hook.hpp"

// `other`: the prefix by which an older MPI may have the call alone.
#define GDRX_STARTED_BY(prefix, other, name, end, PARAMETERS, ARGUMENTS, COPY) \
  GDRX_MPIS int prefix##name##end PARAMETERS {                                 \
    static constinit Real<int PARAMETERS> real_one(#prefix #name #end);        \
    static constinit Real<int PARAMETERS> other_one(#other #name #end);        \
    static const bool kExists = real_one.exists();                             \
    static const bool kOther = other_one.exists();                             \
    if (!kExists && !kOther) return refuse_missing(c, #prefix #name #end);     \
    Copies copies;                                                             \
    if (copies_for_mpi()) [[unlikely]]                                         \
      COPY;                                                                    \
    const int result = kExists ? real_one ARGUMENTS : other_one ARGUMENTS;     \
    return copies.done(result, q, true);                                       \
  }
#define GDRX_STARTED(name, end, PARAMETERS, ARGUMENTS, COPY)           \
  GDRX_STARTED_BY(MPI_, MPIX_, name, end, PARAMETERS, ARGUMENTS, COPY) \
  GDRX_STARTED_BY(PMPI_, PMPIX_, name, end, PARAMETERS, ARGUMENTS, COPY)
#define GDRX_STARTED_AS_OF_OLD(name, PARAMETERS, ARGUMENTS, COPY)        \
  GDRX_STARTED(name, _init, PARAMETERS, ARGUMENTS, COPY)                 \
  GDRX_STARTED_BY(MPIX_, MPI_, name, _init, PARAMETERS, ARGUMENTS, COPY) \
  GDRX_STARTED_BY(PMPIX_, PMPI_, name, _init, PARAMETERS, ARGUMENTS, COPY)
