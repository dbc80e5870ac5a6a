// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/output.hpp"

#include <mpi.h>

#include "gdrx/output.hpp"

namespace gdrx::bench {

Result<void> can_write(const std::string& file, int rank) {
  int error = 0;
  if (rank == 0 && !file.empty()) {
    if (const auto writable = check_output(file); !writable) error = writable.error().native;
  }
  MPI_Bcast(&error, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (error != 0) return fail(Errc::system, "write " + file, error);
  return {};
}

}  // namespace gdrx::bench
