/* SPDX-License-Identifier: Apache-2.0
 * The root comes so late to a Reduce that the others, who are done with it, have freed the communicator and are in
 * MPI_Finalize meanwhile. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  enum { kCount = 1000 };
  static int in[kCount], sums[kCount];
  int rank, size;
  MPI_Comm copy;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Allreduce(in, sums, kCount, MPI_INT, MPI_SUM, copy); /* makes gdrx's communicator */
  if (rank == size - 1) sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
  for (int i = 0; i < kCount; ++i) in[i] = rank;
  MPI_Reduce(in, sums, kCount, MPI_INT, MPI_SUM, size - 1, copy);
  if (rank == size - 1) printf(sums[kCount - 1] == size * (size - 1) / 2 ? "the sum is right\n" : "the sum is wrong\n");
  MPI_Comm_free(&copy);
  MPI_Finalize();
  return 0;
}
