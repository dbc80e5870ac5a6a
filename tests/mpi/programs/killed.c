/* SPDX-License-Identifier: Apache-2.0
 * The last rank dies amid calls. */
#include <mpi.h>
#include <signal.h>

int main(int argc, char** argv) {
  int rank, size, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0;; ++i) {
    if (i == 1000 && rank == size - 1) raise(SIGKILL);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
}
