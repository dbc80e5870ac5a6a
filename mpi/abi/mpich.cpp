// SPDX-License-Identifier: Apache-2.0
#include "mpi/abi/abi.hpp"
#include "mpi/library.hpp"

namespace gdrx::mpi {

// Debian's name is the second.
constexpr Abi kAbi{"libgdrx-coll-mpich.so",
                   "MPICH, Intel MPI or another of libmpi.so.12",
                   {"libmpi.so.12", "libmpich.so.12"},
                   "mpiexec -genv",
                   101,
                   103};

// A library of the interface that MPI 5 has defined says so; those of this one say -1, or lack the
// function.
bool has_this_abi() noexcept {
  if (find_object("ompi_mpi_comm_world") != nullptr) return false;
  int major = -1;
  int minor = -1;
  const auto ask = reinterpret_cast<int (*)(int*, int*)>(find_function("PMPI_Abi_get_version"));
  return ask == nullptr || ask(&major, &minor) != MPI_SUCCESS || major < 0;
}

// Neither MPICH nor Intel MPI was measured.
bool is_known_slower() noexcept { return false; }

}  // namespace gdrx::mpi
