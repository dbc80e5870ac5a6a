/* SPDX-License-Identifier: Apache-2.0
 * The last rank comes seconds late: the others wait, and sleep meanwhile. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? atoi(argv[1]) : 3;
  int rank, size, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* makes gdrx's communicator */
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  if (rank == size - 1) sleep(seconds);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  getrusage(RUSAGE_SELF, &after);
  const double used = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) + (after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                      (after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
  int wrong = sum != size * (size - 1) / 2 || used > seconds * 0.15;
  if (wrong) printf("rank %d: the sum is %d, and %.2f s of %d were computed\n", rank, sum, used, seconds);
  MPI_Finalize();
  return wrong;
}
