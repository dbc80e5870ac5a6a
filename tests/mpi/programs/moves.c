/* SPDX-License-Identifier: Apache-2.0
 * Everything that only moves data, of plain types and of types with gaps, each rank with a type of its own for the same
 * bytes, in place and not, beside MPI's own result: all of the buffer is compared, gaps too. */
#include "both.h"

enum { kMost = 64 };
static MPI_Datatype int_type, gaps, turned, nothing; /* each of six ints, but for the last */

static void make_types(void) {
  MPI_Type_contiguous(6, MPI_INT, &int_type);
  MPI_Type_vector(3, 2, 4, MPI_INT, &gaps);
  const int lengths[2] = {4, 2}, places[2] = {2, 0}; /* no gap, another order */
  MPI_Type_indexed(2, lengths, places, MPI_INT, &turned);
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_commit(&nothing);
  MPI_Type_commit(&int_type);
  MPI_Type_commit(&gaps);
  MPI_Type_commit(&turned);
}

static void fill(char* at, int seed) {
  for (int i = 0; i < 1 << 20; ++i) at[i] = (char)(seed * 31 + i * 7 + i / 251);
}

static void check(const char* call, const char* what) {
  if (memcmp(got, want, 1 << 20) != 0) differs(call, what);
}

#define BEFORE fill(r, rank + 100)

static void move_all(MPI_Datatype st, MPI_Datatype rt, int n, const char* what) {
  const int root = n % size;
  fill(in, rank);
  int counts[kMost], places[kMost], send_counts[kMost], send_places[kMost];
  for (int i = 0, at = 0; i < size; ++i) {
    counts[i] = i == 2 ? 0 : (n + i) / 2;
    places[i] = at + 1; /* gaps between blocks, too */
    at += counts[i] + 1;
  }
  for (int i = 0, at = 3; i < size; ++i) { /* what rank sends to i, and back, in another order of blocks */
    send_counts[size - 1 - i] = (rank + size - 1 - i) % 3 == 0 ? 0 : n / 2 + rank + size - 1 - i;
    send_places[size - 1 - i] = at;
    at += send_counts[size - 1 - i];
  }
  MAKE_BOTH(Bcast, BEFORE, r, n, rank % 2 ? st : rt, root, MPI_COMM_WORLD);
  check("Bcast", what);
  for (int in_place = 0; in_place < 2; ++in_place) {
    const void* s = in_place ? MPI_IN_PLACE : in;
    const void* at_root = in_place && rank == root ? MPI_IN_PLACE : in;
    MAKE_BOTH(Allgather, BEFORE, s, n, st, r, n, rt, MPI_COMM_WORLD);
    check("Allgather", what);
    MAKE_BOTH(Allgatherv, BEFORE, s, counts[rank], st, r, counts, places, rt, MPI_COMM_WORLD);
    check("Allgatherv", what);
    MAKE_BOTH(Alltoall, BEFORE, s, n, st, r, n, rt, MPI_COMM_WORLD);
    check("Alltoall", what);
    MAKE_BOTH(Alltoallv, BEFORE, s, send_counts, send_places, st, r, send_counts, send_places, rt, MPI_COMM_WORLD);
    check("Alltoallv", what);
    MAKE_BOTH(Gather, BEFORE, at_root, n, st, r, n, rt, root, MPI_COMM_WORLD);
    check("Gather", what);
    MAKE_BOTH(Gatherv, BEFORE, at_root, counts[rank], st, r, counts, places, rt, root, MPI_COMM_WORLD);
    check("Gatherv", what);
    MAKE_BOTH(Scatter, BEFORE, in, n, st, in_place && rank == root ? MPI_IN_PLACE : r, n, rt, root, MPI_COMM_WORLD);
    check("Scatter", what);
    MAKE_BOTH(Scatterv, BEFORE, in, counts, places, st, in_place && rank == root ? MPI_IN_PLACE : r, counts[rank], rt,
              root, MPI_COMM_WORLD);
    check("Scatterv", what);
  }
}

/* Wrong by the standard, and done: what is written twice is the same both times. */
static void overlap(void) {
  int counts[kMost], places[kMost];
  fill(in, 5);
  for (int i = 0; i < size; ++i) {
    counts[i] = 8;
    places[i] = 0;
  }
  MAKE_BOTH(Allgatherv, BEFORE, in, 8, MPI_INT, r, counts, places, MPI_INT, MPI_COMM_WORLD);
  check("Allgatherv", "parts that overlap");
}

int main(int argc, char** argv) {
  begin(argc, argv);
  make_types();
  const int counts[] = {1, 2, 5, 101, 1001};
  move_all(nothing, nothing, 5, "nothing");
  for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
    const int n = counts[i];
    move_all(MPI_INT, MPI_INT, n, "ints");
    /* MPICH's scatter of many ends with "Message truncated". */
    if (!kMpich || n < 1001) move_all(MPI_DOUBLE_INT, MPI_DOUBLE_INT, n, "pairs with padding");
    move_all(int_type, gaps, n, "six ints to gaps");
    move_all(gaps, int_type, n, "gaps to six ints");
    move_all(rank % 2 ? gaps : turned, rank % 2 ? turned : int_type, n, "another type on each rank");
  }
  overlap();
  MPI_Type_free(&nothing);
  MPI_Type_free(&int_type);
  MPI_Type_free(&gaps);
  MPI_Type_free(&turned);
  return end();
}
