// SPDX-License-Identifier: Apache-2.0
// gdrx perf --matrix under mpirun.
#pragma once

#include <string>

#include "gdrx/config.hpp"
#include "tools/perf/nic_perf.hpp"

namespace gdrx::tools {

struct MatrixAnswer {
  std::string text;     // of rank 0, nothing on the others
  bool failed = false;  // some pair could not be measured
};
/// Ends the process with one line where the others say nothing for longer than a round can take.
Result<MatrixAnswer> matrix_by_mpi(const perf::NicPerfOptions& nic, bool rails, bool json,
                                   const Config& config);

}  // namespace gdrx::tools
