// SPDX-License-Identifier: Apache-2.0
// gdrx perf --matrix under mpirun.
#pragma once

#include <string>

#include "gdrx/config.hpp"
#include "tools/perf/nic_perf.hpp"

namespace gdrx::tools {

/// The text of rank 0, nothing on the others; `failed` says whether some pair could not be
/// measured. Ends the process with one line where the others say nothing for ten minutes.
struct MatrixAnswer {
  std::string text;
  bool failed = false;
};
Result<MatrixAnswer> matrix_by_mpi(const perf::NicPerfOptions& nic, bool rails, bool json,
                                   const Config& config);

}  // namespace gdrx::tools
