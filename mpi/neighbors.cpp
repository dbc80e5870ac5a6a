// SPDX-License-Identifier: Apache-2.0
#include "mpi/neighbors.hpp"

#include <algorithm>

namespace gdrx::mpi {

Blocks ranks_of(MPI_Comm comm) noexcept {
  int between = 0;
  int ranks = 0;
  if (real::Comm_test_inter(comm, &between) != MPI_SUCCESS) return {};
  const int asked =
      between != 0 ? real::Comm_remote_size(comm, &ranks) : real::Comm_size(comm, &ranks);
  return asked == MPI_SUCCESS ? Blocks{ranks, ranks} : Blocks{};
}

Blocks neighbors_of(MPI_Comm comm) noexcept {
  Blocks found;
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

Span span_of(MPI_Datatype type, std::ptrdiff_t count, int blocks) noexcept {
  Span span;
  add(span, type, 0, count * blocks);
  return span;
}

Span span_of(MPI_Datatype type, List counts, List places, int blocks) noexcept {
  Span span;
  if (counts == nullptr || places == nullptr) return span;
  for (int i = 0; i < blocks; ++i) add(span, type, places[i], counts[i]);
  return span;
}

Span span_of(const MPI_Datatype* types, List counts, List places, int blocks) noexcept {
  Span span;
  if (types == nullptr || counts == nullptr || places == nullptr) return span;
  for (int i = 0; i < blocks; ++i) {
    Span one;
    add(one, types[i], 0, counts[i]);
    if (one.from == one.to) continue;
    one = {one.from + places[i], one.to + places[i]};
    const bool is_first = span.from == span.to;
    span = is_first ? one : Span{std::min(span.from, one.from), std::max(span.to, one.to)};
  }
  return span;
}

}  // namespace gdrx::mpi
