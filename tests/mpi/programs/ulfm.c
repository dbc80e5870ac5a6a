/* SPDX-License-Identifier: Apache-2.0
 * The last rank is killed amid calls, and the others go on without it: by MPIs that let them (ULFM). ulfm; `ulfm revoked`:
 * the first rank has enough of a communicator on which all live, and the others wait in its calls. */
#define _GNU_SOURCE
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { kCalls = 300 };
static int rank, size, wrong;

static void expect(int is, const char* what) {
  if (is) return;
  wrong = 1;
  printf("rank %d: %s is not right\n", rank, what);
}

static int class_of(int code) {
  int is = code;
  MPI_Error_class(code, &is);
  return is;
}

static int sum_of(MPI_Comm comm, int* sum) { return MPI_Allreduce(&rank, sum, 1, MPI_INT, MPI_SUM, comm); }

/* Calls until one fails. */
static void until_a_rank_dies(MPI_Comm comm) {
  int sum = 0, code = MPI_SUCCESS;
  for (int i = 0; code == MPI_SUCCESS && i < 1000000; ++i) {
    if (i == kCalls && rank == size - 1) raise(SIGKILL);
    code = sum_of(comm, &sum);
  }
  expect(class_of(code) == MPIX_ERR_PROC_FAILED || class_of(code) == MPIX_ERR_REVOKED, "the error of a call");
  printf("rank %d: class %s\n", rank, class_of(code) == MPIX_ERR_PROC_FAILED ? "MPIX_ERR_PROC_FAILED" : "another");
  MPIX_Comm_revoke(comm);
  code = sum_of(comm, &sum);
  expect(class_of(code) == MPIX_ERR_REVOKED || class_of(code) == MPIX_ERR_PROC_FAILED, "the error of a call behind");
}

static void until_it_is_revoked(MPI_Comm comm) {
  int sum = 0, code = sum_of(comm, &sum);
  expect(code == MPI_SUCCESS, "a call before");
  if (rank == 0) {
    usleep(200000);
    MPIX_Comm_revoke(comm);
  }
  code = sum_of(comm, &sum);
  expect(class_of(code) == MPIX_ERR_REVOKED, "the error of a revoked communicator");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm all, rest;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  if (argc > 1) until_it_is_revoked(all);
  else until_a_rank_dies(all);
  int all_right = !wrong, sum = 0, ranks = 0, expected = 0;
  MPIX_Comm_agree(all, &all_right);
  MPIX_Comm_shrink(all, &rest);
  MPI_Comm_size(rest, &ranks);
  expect(ranks == size - (argc == 1), "the number of ranks that are left");
  for (int i = 0; i < ranks; ++i) expected += i;
  for (int i = 0; i < kCalls; ++i) {
    if (sum_of(rest, &sum) == MPI_SUCCESS && sum == expected) continue;
    expect(0, "a sum of those that are left");
    break;
  }
  int all_wrong = 0;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, rest);
  if (rank == 0 && !all_wrong && all_right) printf("all are right\n");
  MPI_Comm_free(&rest);
  MPI_Comm_free(&all);
  MPI_Finalize();
  return wrong;
}
