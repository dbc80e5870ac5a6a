/* SPDX-License-Identifier: Apache-2.0
 * One rank has no memory to pack its part of a call in: every rank is told, and none waits for it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static void take_no_more_memory(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld", &pages) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
  fclose(file);
  struct rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = (rlim_t)(pages * sysconf(_SC_PAGESIZE) + (8 << 20));
  setrlimit(RLIMIT_AS, &limit);
}

int main(int argc, char** argv) {
  const int count = 8 << 20; /* pairs of ints */
  int rank, sum = 0, length = 0;
  char text[MPI_MAX_ERROR_STRING] = "nothing";
  MPI_Datatype gaps;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  int* buffer = calloc((size_t)count, 4 * sizeof *buffer);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* makes gdrx's communicator */
  if (rank == 1) take_no_more_memory();
  const int error = rank == 1 ? MPI_Bcast(buffer, count, gaps, 1, MPI_COMM_WORLD)
                              : MPI_Bcast(buffer, 2 * count, MPI_INT, 1, MPI_COMM_WORLD);
  if (error != MPI_SUCCESS) MPI_Error_string(error, text, &length);
  printf("rank %d: %s\n", rank, text);
  fflush(stdout);
  sleep(1); /* some launchers end the others as soon as one has */
  _exit(error == MPI_SUCCESS);
}
