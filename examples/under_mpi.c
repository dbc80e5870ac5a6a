/* SPDX-License-Identifier: Apache-2.0
 * mpirun -np 4 under_mpi: a gdrx communicator from MPI_COMM_WORLD, in C. */
#include <gdrx/gdrx_mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  gdrxComm_t comm = NULL;
  if (gdrxCommInitMPI(&comm, MPI_COMM_WORLD, NULL) != gdrxSuccess) {
    fprintf(stderr, "gdrx: %s\n", gdrxGetLastError(NULL));
    return 1;
  }
  int rank = 0;
  gdrxCommUserRank(comm, &rank);
  double value = rank + 1;
  if (gdrxAllReduce(&value, &value, 1, gdrxFloat64, gdrxSum, comm, NULL, NULL) != gdrxSuccess) {
    fprintf(stderr, "gdrx: %s\n", gdrxGetLastError(comm));
    return 1;
  }
  printf("rank %d: %g\n", rank, value);
  gdrxCommDestroy(comm);
  MPI_Finalize();
  return 0;
}
