// SPDX-License-Identifier: Apache-2.0
#include "mpi/neighbors.hpp"

namespace gdrx::mpi {

Degrees ranks_of(MPI_Comm comm) noexcept {
  int between = 0;
  int ranks = 0;
  if (real::Comm_test_inter(comm, &between) != MPI_SUCCESS) return {};
  const int asked =
      between != 0 ? real::Comm_remote_size(comm, &ranks) : real::Comm_size(comm, &ranks);
  return asked == MPI_SUCCESS ? Degrees{ranks, ranks} : Degrees{};
}

Degrees neighbors_of(MPI_Comm comm) noexcept {
  Degrees found;
  int topology = MPI_UNDEFINED;
  int number = 0;  // of dimensions or neighbours
  int rank = 0;
  if (real::Topo_test(comm, &topology) != MPI_SUCCESS) return found;
  if (topology == MPI_CART && real::Cartdim_get(comm, &number) == MPI_SUCCESS) {
    return {2 * number, 2 * number};
  }
  if (topology == MPI_GRAPH && real::Comm_rank(comm, &rank) == MPI_SUCCESS &&
      real::Graph_neighbors_count(comm, rank, &number) == MPI_SUCCESS) {
    return {number, number};
  }
  if (topology == MPI_DIST_GRAPH) {
    int weighted = 0;
    real::Dist_graph_neighbors_count(comm, &found.in, &found.out, &weighted);
  }
  return found;
}

}  // namespace gdrx::mpi
