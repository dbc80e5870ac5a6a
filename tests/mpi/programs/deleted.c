/* SPDX-License-Identifier: Apache-2.0
 * An attribute whose end makes a call of the communicator that is being freed. The next communicator, of other ranks, may
 * have the same handle. */
#include <mpi.h>
#include <stdio.h>

static int wrong = 0;

static int sum_is(MPI_Comm comm) {
  int size, one = 1, sum = 0;
  MPI_Comm_size(comm, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum == size;
}

static int on_delete(MPI_Comm comm, int key, void* value, void* extra) {
  wrong += !sum_is(comm);
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  int rank, size, key, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL);
  for (int round = 0; round < 20; ++round) {
    MPI_Comm comm;
    int first = rank;
    MPI_Comm_split(MPI_COMM_WORLD, round % 2 && rank == 0, round % 4 < 2 ? rank : -rank, &comm);
    MPI_Comm_set_attr(comm, key, &wrong);
    wrong += !sum_is(comm);
    MPI_Bcast(&first, 1, MPI_INT, 0, comm);
    if (round % 2 == 0) wrong += first != (round % 4 < 2 ? 0 : size - 1);
    MPI_Comm_free(&comm);
  }
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf(all ? "%d were wrong\n" : "all are right\n", all);
  MPI_Finalize();
  return wrong != 0;
}
