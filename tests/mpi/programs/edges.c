/* SPDX-License-Identifier: Apache-2.0
 * Legal, and rare: buffers that are none where nothing comes, beside MPI's own results. Each rank must take a call, or
 * none: else the others wait for ever. */
#include "both.h"

enum { kRanks = 64, kBlock = 8 };
static int counts[kRanks];

static void check(const char* call, const char* what) {
  if (memcmp(got, want, kBytes) != 0) differs(call, what);
}

#define BEFORE memset(r, kPattern, kBytes)

static void no_buffer(void) {
  for (int i = 0; i < size; ++i) counts[i] = i == 1 ? 0 : kBlock;
  MAKE_BOTH(Reduce_scatter, BEFORE, in, rank == 1 ? NULL : r, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check("Reduce_scatter", "a rank that gets nothing, into no memory");
}

int main(int argc, char** argv) {
  begin(argc, argv);
  for (int i = 0; i < kBytes; ++i) in[i] = (char)(rank * 31 + i * 7);
  no_buffer();
  return end();
}
