// SPDX-License-Identifier: Apache-2.0
// What the job's launcher says in the environment.
#pragma once

#include "gdrx/config.hpp"

namespace gdrx::net {

/// Processes of the job on this host, as torchrun, Open MPI, MPICH and its kin, or Slurm say, the
/// one that started this process before those that may have started it; 1 if none does.
int ranks_here(const Environment& environment);

}  // namespace gdrx::net
