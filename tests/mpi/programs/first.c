/* SPDX-License-Identifier: Apache-2.0
 * Not a test: what the first call of a communicator takes, which makes gdrx's, for the slowest rank.
 *   GDRX_MPI=all gdrx mpirun -np 2 mpi_first */
#include <time.h>

#include "both.h"

enum { kRounds = 21 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char** argv) {
  double times[kRounds], first = 0;
  begin(argc, argv);
  for (int i = 0; i < kRounds; ++i) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    double took = now();
    MPI_Allreduce(in, got, 2048, MPI_INT, MPI_SUM, copy);
    took = now() - took;
    MPI_Allreduce(&took, &times[i], 1, MPI_DOUBLE, MPI_MAX, copy);
    MPI_Comm_free(&copy);
  }
  first = times[0];
  qsort(times, kRounds, sizeof times[0], compare);
  if (rank == 0) printf("%d ranks: a communicator's first call took %.2f ms, the program's first %.2f ms\n", size, times[kRounds / 2], first);
  MPI_Finalize();
  return 0;
}
