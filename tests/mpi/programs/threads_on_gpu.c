/* SPDX-License-Identifier: Apache-2.0
 * Threads that wait for messages into memory of a GPU at once: MPI uses the handles of their requests again and again.
 * threads_on_gpu DRIVER. */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_memory.h"

enum { kThreads = 3, kTimes = 400, kInts = 500 };
static int rank, size;
static int wrong[kThreads];

static void* exchange(void* number) {
  const int thread = *(int*)number, next = (rank + 1) % size, before = (rank + size - 1) % size;
  int sent[kInts], got[kInts];
  const unsigned long long to = gpu_out + (unsigned)thread * sizeof got;
  enter_gpu(gpu_context);
  for (int time = 0; time < kTimes; ++time) {
    MPI_Request request[2];
    for (int i = 0; i < kInts; ++i) sent[i] = rank * 1000 + thread * 100 + time + i;
    MPI_Irecv((void*)to, kInts, MPI_INT, before, thread, MPI_COMM_WORLD, &request[0]);
    MPI_Isend(sent, kInts, MPI_INT, next, thread, MPI_COMM_WORLD, &request[1]);
    if (time % 2) MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    else for (int i = 1; i >= 0; --i) MPI_Wait(&request[i], MPI_STATUS_IGNORE);
    read_gpu(got, to, sizeof got);
    for (int i = 0; i < kInts; ++i) wrong[thread] += got[i] != before * 1000 + thread * 100 + time + i;
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided, sum = 0;
  pthread_t threads[kThreads];
  int numbers[kThreads];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  load(argv[1], 1 << 16);
  for (int i = 0; i < kThreads; ++i) numbers[i] = i;
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, exchange, &numbers[i]);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; ++i) sum += wrong[i];
  if (sum != 0) printf("rank %d: %d ints are wrong\n", rank, sum);
  MPI_Finalize();
  if (rank == 0 && sum == 0) printf("what came is right\n");
  return sum != 0;
}
