/* SPDX-License-Identifier: Apache-2.0
 * Legal, and rare: buffers that are none where nothing comes, and places before the buffer or on one another, beside
 * MPI's own results. Each rank must take a call, or
 * none: else the others wait for ever. */
#include "both.h"

enum { kRanks = 64, kBlock = 8 };
static int counts[kRanks], places[kRanks], one_place[kRanks];

static void check(const char* call, const char* what) {
  if (memcmp(got, want, kBytes) != 0) differs(call, what);
}

#define BEFORE memset(r, kPattern, kBytes)

static void no_buffer(void) {
  for (int i = 0; i < size; ++i) counts[i] = i == 1 ? 0 : kBlock;
  MAKE_BOTH(Reduce_scatter, BEFORE, in, rank == 1 ? NULL : r, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check("Reduce_scatter", "a rank that gets nothing, into no memory");
}

static void places_before_the_buffer(void) {
  for (int i = 0; i < size; ++i) {
    counts[i] = kBlock;
    places[i] = (i - size) * kBlock;
  }
  MAKE_BOTH(Allgatherv, BEFORE, in, kBlock, MPI_INT, r + kBytes / 2, counts, places, MPI_INT, MPI_COMM_WORLD);
  check("Allgatherv", "places before the buffer");
  for (int i = 0; i < size; ++i) places[i] = i == 0 ? -1 : i * kBlock;
  counts[0] = 0;
  MAKE_BOTH(Allgatherv, BEFORE, in, counts[rank], MPI_INT, r, counts, places, MPI_INT, MPI_COMM_WORLD);
  check("Allgatherv", "a place of nothing");
}

static void blocks_sent_twice(void) {
  for (int i = 0; i < size; ++i) places[i] = i * (counts[i] = kBlock);
  MAKE_BOTH(Alltoallv, BEFORE, in, counts, one_place, MPI_INT, r, counts, places, MPI_INT, MPI_COMM_WORLD);
  check("Alltoallv", "blocks that are sent to all");
  MAKE_BOTH(Scatterv, BEFORE, in, counts, one_place, MPI_INT, r, kBlock, MPI_INT, 0, MPI_COMM_WORLD);
  check("Scatterv", "a block that is sent to all");
}

int main(int argc, char** argv) {
  begin(argc, argv);
  for (int i = 0; i < kBytes; ++i) in[i] = (char)(rank * 31 + i * 7);
  no_buffer();
  places_before_the_buffer();
  blocks_sent_twice();
  return end();
}
