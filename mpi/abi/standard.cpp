// SPDX-License-Identifier: Apache-2.0
#include "mpi/abi/abi.hpp"
#include "mpi/library.hpp"

namespace gdrx::mpi {

constexpr Abi kAbi{"libgdrx-coll-standard.so",
                   "one of MPI 5's binary interface",
                   {"libmpi_abi.so.1", ""},
                   "mpiexec -genv",
                   0,
                   0};

// MPICH's libraries of their own interface have the function as well, and say -1.
bool has_this_abi() noexcept {
  int major = -1;
  int minor = -1;
  const auto ask = reinterpret_cast<int (*)(int*, int*)>(find_function("PMPI_Abi_get_version"));
  return ask != nullptr && ask(&major, &minor) == MPI_SUCCESS && major >= 1;
}

// None was measured.
bool is_known_slower() noexcept { return false; }

}  // namespace gdrx::mpi
