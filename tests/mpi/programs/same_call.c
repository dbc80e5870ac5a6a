/* SPDX-License-Identifier: Apache-2.0
 * A thousand sums and broadcasts of one integer: 4 bytes. */
#include <mpi.h>

int main(int argc, char** argv) {
  int rank, size, sum = 0, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 1000; ++i) {
    int value = rank == 0 ? i : -1;
    MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    wrong += sum != i * size || value != i;
  }
  MPI_Finalize();
  return wrong != 0;
}
