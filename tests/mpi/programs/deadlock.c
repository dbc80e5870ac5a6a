/* SPDX-License-Identifier: Apache-2.0
 * Legal, and it ends if a collective that waits lets MPI go on: rank 1's receive needs rank 0, which is in the
 * collective. Single copy off, so that the message is not taken out of rank 0's memory. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const int bytes = 16 << 20;
  int rank, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* buffer = calloc(1, bytes);
  for (int round = 0; round < 3; ++round) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* makes gdrx's communicator */
    if (rank == 0) MPI_Isend(buffer, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
    if (rank == 1) MPI_Recv(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (rank == 0) printf("ended\n");
  free(buffer);
  MPI_Finalize();
  return 0;
}
