// SPDX-License-Identifier: Apache-2.0
// A module of `gdrx doctor --cluster` under mpirun: every rank's text at rank 0. Loaded when asked,
// so that the gdrx command itself needs no MPI.
#include <mpi.h>

#include <limits>
#include <vector>

extern "C" {

/// Calls take(rank, text, bytes, user) at rank 0 for every rank in turn. Returns this process's
/// rank, or -1: MPI failed, or the texts are larger than it can gather.
__attribute__((visibility("default"))) int gdrx_mpi_gather_v1(
    const char* text, int bytes, void (*take)(int, const char*, int, void*), void* user) {
  if (MPI_Init(nullptr, nullptr) != MPI_SUCCESS) return -1;
  int rank = -1;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<int> lengths(static_cast<std::size_t>(size));
  std::vector<int> places(static_cast<std::size_t>(size));
  bool good =
      MPI_Gather(&bytes, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, MPI_COMM_WORLD) == MPI_SUCCESS;
  long long all = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    places[i] = static_cast<int>(all);
    all += lengths[i];
    if (all > std::numeric_limits<int>::max()) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  std::vector<char> texts(rank == 0 ? static_cast<std::size_t>(all) : 0);
  good = good && MPI_Gatherv(text, bytes, MPI_CHAR, texts.data(), lengths.data(), places.data(),
                             MPI_CHAR, 0, MPI_COMM_WORLD) == MPI_SUCCESS;
  for (int i = 0; good && rank == 0 && i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    take(i, texts.data() + places[at], lengths[at], user);
  }
  MPI_Finalize();
  return good ? rank : -1;
}

}  // extern "C"
