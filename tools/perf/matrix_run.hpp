// SPDX-License-Identifier: Apache-2.0
// gdrx perf --matrix under mpirun.
#pragma once

#include "gdrx/config.hpp"
#include "tools/perf/nic_perf.hpp"

namespace gdrx::tools {

/// Prints the matrix on rank 0, before MPI comes to its end; whether all pairs were measured. Ends
/// the process with one line where the others say nothing for longer than a round can take, from
/// MPI_Init to MPI_Finalize.
Result<bool> matrix_by_mpi(const perf::NicPerfOptions& nic, bool rails, bool json,
                           const Config& config);

}  // namespace gdrx::tools
