/* SPDX-License-Identifier: Apache-2.0
 * Nonblocking collectives beside MPI's own results, and their requests beside MPI's in every call that asks for some:
 * many at once, completed in any order, blocking calls between them, communicators that are freed before the end. */
#include "both.h"

enum { kMost = 64, kMany = 24, kCount = 1500 };
static int is_mpichs; /* it has the calls, and leaves the status of a collective as it was */
static int counts[kMost], places[kMost], sums[kMany][kCount], mine[kMany][kCount];
static MPI_Request requests[2 * kMany];
static int messages[2 * kMany];

static void check(const char* what, int right) {
  ++checks;
  if (!right) differs("a nonblocking call", what);
}

#define BEFORE memset(r, kPattern, 1 << 20)
/* By the hook, and by MPI itself. */
#define BOTH(name, ...)                                                                                  \
  do {                                                                                                   \
    MPI_Request q;                                                                                       \
    MPI_Status status;                                                                                   \
    int got_count = -1;                                                                                  \
    __typeof__(&MPI_##name) call = (__typeof__(call))real("PMPI_" #name);                                \
    r = got;                                                                                             \
    BEFORE;                                                                                              \
    MPI_##name(__VA_ARGS__, &q);                                                                         \
    MPI_Wait(&q, &status);                                                                               \
    MPI_Get_count(&status, MPI_BYTE, &got_count);                                                        \
    r = want;                                                                                            \
    BEFORE;                                                                                              \
    call(__VA_ARGS__, &q);                                                                               \
    ((__typeof__(&MPI_Wait))real("PMPI_Wait"))(&q, MPI_STATUS_IGNORE);                                   \
    check(#name, memcmp(got, want, 1 << 20) == 0);                                                       \
    check(#name "'s request", q == MPI_REQUEST_NULL && (got_count == 0 || is_mpichs));                  \
  } while (0)

static void each(int n, MPI_Datatype type) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const int root = n % size;
  for (int i = 0, at = 0; i < size; ++i) {
    counts[i] = i == 1 ? 0 : n / 2 + i + 1;
    places[i] = at + 1;
    at += counts[i] + 1;
  }
  BOTH(Iallreduce, in, r, n, MPI_INT, MPI_SUM, world);
  BOTH(Iallreduce, MPI_IN_PLACE, r, n, MPI_INT, MPI_BXOR, world);
  BOTH(Ireduce, in, r, n, MPI_INT, MPI_MAX, root, world);
  BOTH(Ireduce_scatter_block, in, r, n, MPI_INT, MPI_SUM, world);
  BOTH(Ireduce_scatter, in, r, counts, MPI_INT, MPI_SUM, world);
  BOTH(Iscan, in, r, n, MPI_INT, MPI_SUM, world);
  BOTH(Iexscan, in, r, n, MPI_INT, MPI_SUM, world);
  BOTH(Ibcast, r, n, type, root, world);
  BOTH(Iallgather, in, n, type, r, n, type, world);
  BOTH(Iallgatherv, in, counts[rank], type, r, counts, places, type, world);
  BOTH(Ialltoall, in, n, type, r, n, type, world);
  for (int i = 0; i < size; ++i) places[i] = i * (counts[i] = n);
  BOTH(Ialltoallv, in, counts, places, type, r, counts, places, type, world);
  BOTH(Igather, in, n, type, r, n, type, root, world);
  BOTH(Igatherv, in, n, type, r, counts, places, type, root, world);
  BOTH(Iscatter, in, n, type, r, n, type, root, world);
  BOTH(Iscatterv, in, counts, places, type, r, n, type, root, world);
  BOTH(Ibarrier, world);
}

/* kMany sums and as many messages in a ring, in turns; `blocking`: and a blocking sum after each. */
static void post(MPI_Comm comm, int blocking) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (int i = 0; i < kMany; ++i) {
    for (int k = 0; k < kCount; ++k) mine[i][k] = rank + i + k;
    memset(sums[i], 0, sizeof sums[i]);
    messages[i] = rank * 100 + i;
    MPI_Iallreduce(mine[i], sums[i], kCount, MPI_INT, MPI_SUM, comm, &requests[2 * i]);
    if (i % 2) MPI_Isend(&messages[i - 1], 1, MPI_INT, next, i, MPI_COMM_WORLD, &requests[2 * i + 1]);
    else MPI_Irecv(&messages[kMany + i], 1, MPI_INT, before, i + 1, MPI_COMM_WORLD, &requests[2 * i + 1]);
    int sum = 0;
    if (blocking) MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (blocking) check("a blocking sum between", sum == i * size);
  }
}

static int right_sums(void) {
  const int before = (rank + size - 1) % size;
  for (int i = 0; i < kMany; ++i) {
    for (int k = 0; k < kCount; ++k)
      if (sums[i][k] != size * (size - 1) / 2 + size * (i + k)) return 0;
    if (i % 2 == 0 && messages[kMany + i] != before * 100 + i) return 0;
    if (requests[2 * i] != MPI_REQUEST_NULL || requests[2 * i + 1] != MPI_REQUEST_NULL) return 0;
  }
  return 1;
}

static void every_way(MPI_Comm comm, int blocking) {
  int flag = 0, index, some, indices[2 * kMany], left = 2 * kMany;
  const int n = 2 * kMany;
  post(comm, blocking);
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  check("Waitall", right_sums());
  post(comm, blocking);
  for (int i = n - 1; i >= 0; --i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  check("Wait, the last first", right_sums());
  post(comm, blocking);
  for (int i = 0; i < n; ++i) MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE);
  check("Waitany", right_sums());
  MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE);
  check("Waitany of none", index == MPI_UNDEFINED);
  post(comm, blocking);
  for (; left > 0; left -= some) MPI_Waitsome(n, requests, &some, indices, MPI_STATUSES_IGNORE);
  check("Waitsome", right_sums());
  post(comm, blocking);
  for (flag = 0; !flag;) MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE);
  check("Testall", right_sums());
  post(comm, blocking);
  for (int i = n - 1; i >= 0; --i)
    for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
  check("Test, the last first", right_sums());
  post(comm, blocking);
  for (int i = 0; i < n; i += flag) MPI_Testany(n, requests, &index, &flag, MPI_STATUS_IGNORE);
  check("Testany", right_sums());
  post(comm, blocking);
  for (left = n; left > 0; left -= some) MPI_Testsome(n, requests, &some, indices, MPI_STATUSES_IGNORE);
  check("Testsome", right_sums());
  post(comm, blocking);
  for (flag = 0; !flag;) MPI_Request_get_status(requests[n - 2], &flag, MPI_STATUS_IGNORE);
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  check("Request_get_status", right_sums());
}

/* The type and the communicator end before the call does; rank 0 comes to it late by a message. */
static void freed_meanwhile(void) {
  MPI_Comm copy;
  MPI_Datatype gaps;
  MPI_Request request;
  int sum = 0, wrong_ones = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, copy); /* makes gdrx's communicator */
  MPI_Type_vector(kCount, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  int* buffer = calloc(2 * kCount, sizeof *buffer);
  for (int i = 0; rank == 0 && i < kCount; ++i) buffer[2 * i] = i + 7;
  if (rank == 0) MPI_Recv(&sum, 1, MPI_INT, size - 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Ibcast(buffer, 1, gaps, 0, copy, &request);
  MPI_Type_free(&gaps);
  MPI_Comm_free(&copy);
  if (rank == size - 1) MPI_Send(&sum, 1, MPI_INT, 0, 99, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < kCount; ++i) wrong_ones += buffer[2 * i] != i + 7 || buffer[2 * i + 1] != 0;
  check("a type and a communicator that were freed", wrong_ones == 0);
  free(buffer);
}

/* Lists that are gone before the end, as those of Fortran's binding where its integers are no C int. */
static void lists_meanwhile(void) {
  MPI_Datatype gaps;
  MPI_Request request;
  int sum = 0, wrong_ones = 0, *lists = malloc(2 * (size_t)size * sizeof *lists);
  MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  int* buffer = calloc((size_t)size * 4, sizeof *buffer);
  for (int i = 0; i < size; ++i) lists[i] = 1, lists[size + i] = size - 1 - i;
  int own[3] = {rank + 1, 0, rank + 2};
  if (rank == 0) MPI_Recv(&sum, 1, MPI_INT, size - 1, 98, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Iallgatherv(own, 1, gaps, buffer, lists, lists + size, gaps, MPI_COMM_WORLD, &request);
  memset(lists, 0, 2 * (size_t)size * sizeof *lists);
  if (rank == size - 1) MPI_Send(&sum, 1, MPI_INT, 0, 98, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < size; ++i) {
    const int* of = buffer + (size_t)(size - 1 - i) * 3;
    wrong_ones += of[0] != i + 1 || of[2] != i + 2;
  }
  check("lists that were freed", wrong_ones == 0);
  free(buffer);
  free(lists);
  MPI_Type_free(&gaps);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  const char* mode = getenv("GDRX_MPI");
  is_mpichs = kMpich && (!mode || !strstr(mode, "all"));
  MPI_Comm copy;
  MPI_Datatype gaps;
  int sum = 0;
  for (int i = 0; i < 1 << 20; ++i) in[i] = (char)(rank * 31 + i * 7 + i / 251);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* makes gdrx's communicator */
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, copy);
  MPI_Type_vector(3, 2, 4, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  const int sizes[] = {1, 5, 101, 1001};
  for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    each(sizes[i], MPI_INT);
    each(sizes[i], gaps);
  }
  every_way(MPI_COMM_WORLD, 0);
  every_way(copy, 1);
  freed_meanwhile();
  if (argc > 1) lists_meanwhile();
  MPI_Type_free(&gaps);
  MPI_Comm_free(&copy);
  return end();
}
