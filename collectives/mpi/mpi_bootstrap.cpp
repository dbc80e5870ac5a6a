// SPDX-License-Identifier: Apache-2.0
// MPI as the bootstrap: one MPI_Allgather of addresses, then gdrx talks for itself.
#include <dlfcn.h>

#include "collectives/api/c_mpi.hpp"
#include "gdrx/gdrx_mpi.h"

namespace {

// MPI's own: a preloaded libgdrx-coll-*.so has both of its names, and would want this communicator.
decltype(&MPI_Allgather) all_gather_of_mpi() noexcept {
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&MPI_Get_library_version), &library) != 0) {
    if (void* const handle = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
      if (void* const found = dlsym(handle, "PMPI_Allgather")) {
        return reinterpret_cast<decltype(&MPI_Allgather)>(found);
      }
    }
  }
  return PMPI_Allgather;
}

int all_gather(const void* mine, void* all, size_t bytes, void* user) {
  static const auto kAllGather = all_gather_of_mpi();
  const auto count = static_cast<int>(bytes);
  return kAllGather(mine, count, MPI_BYTE, all, count, MPI_BYTE, *static_cast<MPI_Comm*>(user));
}

}  // namespace

gdrxResult_t gdrxCommInitMPI(gdrxComm_t* comm, MPI_Comm mpi, const gdrxConfig_t* config) {
  int initialized = 0;
  if (MPI_Initialized(&initialized) != MPI_SUCCESS || initialized == 0 || mpi == MPI_COMM_NULL) {
    return gdrxInvalidArgument;
  }
  int rank = 0;
  int size = 0;
  if (MPI_Comm_rank(mpi, &rank) != MPI_SUCCESS || MPI_Comm_size(mpi, &size) != MPI_SUCCESS) {
    return gdrxInvalidArgument;
  }
  return gdrxCommInitAllGather(comm, size, rank, all_gather, &mpi, config);
}
