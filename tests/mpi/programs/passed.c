/* SPDX-License-Identifier: Apache-2.0
 * What gdrx does not take, and what a hook of a call that is passed on costs: `passed cost` prints nanoseconds, of a
 * call that MPI ends at once (a broadcast or a sum of nothing). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void longest(void* in, void* inout, int* n, MPI_Datatype* type) {
  for (int i = 0; i < *n; ++i)
    if (((int*)in)[i] > ((int*)inout)[i]) ((int*)inout)[i] = ((int*)in)[i];
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static void cost(MPI_Comm comm, int sums, const char* name) {
  enum { kRounds = 200, kCalls = 10000 };
  static double times[kRounds];
  int value = 0, sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = now();
    for (int i = 0; i < kCalls; ++i) {
      if (sums) MPI_Allreduce(&value, &sum, 0, MPI_INT, MPI_SUM, comm);
      else MPI_Bcast(&value, 0, MPI_INT, 0, comm);
    }
    times[round] = (now() - begin) / kCalls;
  }
  qsort(times, kRounds, sizeof times[0], compare);
  printf("%s: %.1f ns a call, quickest %.1f\n", name, times[kRounds / 2], times[0]);
}

int main(int argc, char** argv) {
  int rank, size, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1 && strcmp(argv[1], "cost") == 0) {
    cost(MPI_COMM_SELF, 0, "broadcast, a communicator that was declined");
    cost(MPI_COMM_WORLD, 0, "broadcast, of a size that is MPI's");
    cost(MPI_COMM_WORLD, 1, "sum, of a size that is MPI's");
    MPI_Finalize();
    return 0;
  }
  MPI_Op op;
  int most = 0, self = 0;
  MPI_Op_create(longest, 1, &op);
  MPI_Allreduce(&rank, &most, 1, MPI_INT, op, MPI_COMM_WORLD);
  wrong += most != size - 1;
  MPI_Op_free(&op);
  MPI_Allreduce(&rank, &self, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  wrong += self != rank;
  MPI_Comm half, between;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, (rank + 1) % 2, 5, &between);
  int others = 0, expected = 0;
  MPI_Allreduce(&rank, &others, 1, MPI_INT, MPI_SUM, between);
  for (int i = (rank + 1) % 2; i < size; i += 2) expected += i;
  wrong += others != expected;
#ifdef OPEN_MPI /* distributions have MPICH without its checks of arguments: it crashes */
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  wrong += MPI_Allreduce(&rank, &most, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS;
  wrong += MPI_Bcast(&rank, 1, MPI_INT, size, MPI_COMM_WORLD) == MPI_SUCCESS;
  wrong += MPI_Bcast(&rank, 1, NULL, 0, MPI_COMM_WORLD) == MPI_SUCCESS;
#endif
  if (wrong) printf("rank %d: %d were wrong\n", rank, wrong);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
  MPI_Finalize();
  return wrong != 0;
}
