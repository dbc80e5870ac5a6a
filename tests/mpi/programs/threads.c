/* SPDX-License-Identifier: Apache-2.0
 * Threads that each have communicators of their own, all at once, made and freed beside the others' calls. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { kThreads = 4, kRounds = 20, kCalls = 50 };
static int rank, size, wrong[kThreads];

static MPI_Comm comms[kThreads];

static void* calls(void* argument) {
  const int me = *(int*)argument;
  for (int round = 0; round < kRounds; ++round) {
    MPI_Comm copy;
    MPI_Comm_dup(comms[me], &copy);
    for (int i = 0; i < kCalls; ++i) {
      int in = rank + i + me, sum = 0, expected = size * (size - 1) / 2 + size * (i + me);
      MPI_Allreduce(&in, &sum, 1, MPI_INT, MPI_SUM, copy);
      if (sum != expected) ++wrong[me];
    }
    MPI_Comm_free(&copy);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided, all = 0, numbers[kThreads];
  pthread_t threads[kThreads];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) return printf("0 checks were right: this MPI has no threads\n"), 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < kThreads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < kThreads; ++i) {
    numbers[i] = i;
    pthread_create(&threads[i], NULL, calls, &numbers[i]);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
    all += wrong[i];
    MPI_Comm_free(&comms[i]);
  }
  if (rank == 0 && all == 0) printf("%d checks were right\n", kThreads * kRounds * kCalls);
  MPI_Finalize();
  return all != 0;
}
