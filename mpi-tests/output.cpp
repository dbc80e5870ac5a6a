// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/output.hpp"

#include <mpi.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace gdrx::bench {

Result<void> all_printed() {
  if (std::fflush(stdout) != 0) return fail(Errc::system, "cannot write to stdout", errno);
  // A write may have failed long before the last: its error stays with the stream.
  if (std::ferror(stdout) != 0) return fail(Errc::system, "cannot write to stdout");
  return {};
}

Result<void> can_write(const std::string& file, int rank) {
  int error = 0;
  if (rank == 0 && !file.empty()) {
    std::error_code ignored;
    const bool there = std::filesystem::exists(file, ignored);
    if (!std::ofstream(file, std::ios::app)) error = errno;
    if (!there && error == 0) std::filesystem::remove(file, ignored);
  }
  MPI_Bcast(&error, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (error != 0) return fail(Errc::system, "write " + file, error);
  return {};
}

}  // namespace gdrx::bench
