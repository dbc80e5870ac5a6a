// SPDX-License-Identifier: Apache-2.0
// A module of `gdrx doctor --cluster` under mpirun: texts of every rank at every rank. Loaded when
// asked, so that the gdrx command itself needs no MPI. One thread; statuses are 0 or 1.
#include <mpi.h>

#include <limits>
#include <vector>

#define GDRX_ENTRY extern "C" __attribute__((visibility("default")))

GDRX_ENTRY int gdrx_mpi_begin_v1(int* rank) {
  if (MPI_Init(nullptr, nullptr) != MPI_SUCCESS) return 1;
  return MPI_Comm_rank(MPI_COMM_WORLD, rank) == MPI_SUCCESS ? 0 : 1;
}

GDRX_ENTRY void gdrx_mpi_end_v1() { MPI_Finalize(); }

/// Calls take(rank, text, bytes, user) for every rank in turn.
GDRX_ENTRY int gdrx_mpi_all_gather_v1(const char* text, int bytes,
                                      void (*take)(int, const char*, int, void*), void* user) {
  int size = 0;
  if (MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS) return 1;
  std::vector<int> lengths(static_cast<std::size_t>(size));
  std::vector<int> places(static_cast<std::size_t>(size));
  if (MPI_Allgather(&bytes, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD) !=
      MPI_SUCCESS) {
    return 1;
  }
  long long all = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    places[i] = static_cast<int>(all);
    all += lengths[i];
    if (all > std::numeric_limits<int>::max()) return 1;  // the same at every rank
  }
  std::vector<char> texts(static_cast<std::size_t>(all));
  if (MPI_Allgatherv(text, bytes, MPI_CHAR, texts.data(), lengths.data(), places.data(), MPI_CHAR,
                     MPI_COMM_WORLD) != MPI_SUCCESS) {
    return 1;
  }
  for (int i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    take(i, texts.data() + places[at], lengths[at], user);
  }
  return 0;
}
