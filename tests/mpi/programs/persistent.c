/* SPDX-License-Identifier: Apache-2.0
 * Persistent collectives beside MPI's own results: started again and again, in other orders on other ranks, beside
 * messages and in every call that asks for requests; what they were made of is freed before they are started. */
#include <unistd.h>

#include "both.h"

#if defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define NAMED(name) MPIX_##name
#else
#define NAMED(name) MPI_##name
#endif

enum { kMost = 64, kMany = 12, kCount = 1500, kRounds = 3 };
static int counts[kMost], places[kMost], sums[kMany][kCount], mine[kMany][kCount];
static MPI_Request requests[2 * kMany];
static int messages[2 * kMany];

static void check(const char* what, int right) {
  ++checks;
  if (!right) differs("a persistent call", what);
}

static void refill(int round) {
  for (int i = 0; i < 1 << 20; ++i) in[i] = (char)(rank * 31 + i * 7 + i / 251 + round * 13);
}

/* By the hook, and by MPI itself, which has the blocking call: 4.0.2 of MPICH frees types too often in persistent
 * ones. `in_place`: what is read is where the result is written. */
#define BOTH(name, in_place, ...)                                             \
  do {                                                                        \
    MPI_Request call;                                                         \
    __typeof__(&MPI_##name) real_one = (__typeof__(real_one))real("PMPI_" #name); \
    r = got;                                                                  \
    NAMED(name##_init)(__VA_ARGS__, MPI_INFO_NULL, &call);                    \
    for (int round = 0; round < kRounds; ++round) {                           \
      const MPI_Request before = call;                                        \
      refill(round);                                                          \
      memset(got, kPattern, 1 << 20);                                         \
      memset(want, kPattern, 1 << 20);                                        \
      if (in_place) memcpy(got, in, 1 << 19), memcpy(want, in, 1 << 19);      \
      MPI_Start(&call);                                                       \
      MPI_Wait(&call, MPI_STATUS_IGNORE);                                     \
      check(#name "'s request", call == before && call != MPI_REQUEST_NULL);  \
      MPI_Wait(&call, MPI_STATUS_IGNORE); /* of one that is not active */     \
      r = want;                                                               \
      real_one(__VA_ARGS__);                                                  \
      check(#name, memcmp(got, want, 1 << 20) == 0);                          \
    }                                                                         \
    MPI_Request_free(&call);                                                  \
    check(#name "'s request, freed", call == MPI_REQUEST_NULL);               \
  } while (0)

static void each(int n, MPI_Datatype type) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const int root = n % size;
  for (int i = 0, at = 0; i < size; ++i) {
    counts[i] = i == 1 ? 0 : n / 2 + i + 1;
    places[i] = at + 1;
    at += counts[i] + 1;
  }
  BOTH(Allreduce, 0, in, r, n, MPI_INT, MPI_SUM, world);
  BOTH(Allreduce, 1, MPI_IN_PLACE, r, n, MPI_INT, MPI_BXOR, world);
  BOTH(Reduce, 0, in, r, n, MPI_INT, MPI_MAX, root, world);
  BOTH(Reduce_scatter_block, 0, in, r, n, MPI_INT, MPI_SUM, world);
  BOTH(Reduce_scatter, 0, in, r, counts, MPI_INT, MPI_SUM, world);
  BOTH(Scan, 0, in, r, n, MPI_INT, MPI_SUM, world);
  BOTH(Exscan, 0, in, r, n, MPI_INT, MPI_SUM, world);
  BOTH(Bcast, 1, r, n, type, root, world);
  BOTH(Allgather, 0, in, n, type, r, n, type, world);
  BOTH(Allgatherv, 0, in, counts[rank], type, r, counts, places, type, world);
  BOTH(Alltoall, 0, in, n, type, r, n, type, world);
  for (int i = 0; i < size; ++i) places[i] = i * (counts[i] = n);
  BOTH(Alltoallv, 0, in, counts, places, type, r, counts, places, type, world);
  BOTH(Gather, 0, in, n, type, r, n, type, root, world);
  BOTH(Gatherv, 0, in, n, type, r, counts, places, type, root, world);
  BOTH(Scatter, 0, in, n, type, r, n, type, root, world);
  BOTH(Scatterv, 0, in, counts, places, type, r, n, type, root, world);
  BOTH(Barrier, 0, world);
  BOTH(Reduce_scatter, 1, MPI_IN_PLACE, r, counts, MPI_INT, MPI_SUM, world);
  BOTH(Reduce_scatter_block, 1, MPI_IN_PLACE, r, n, MPI_INT, MPI_SUM, world);
  BOTH(Scan, 1, MPI_IN_PLACE, r, n, MPI_INT, MPI_SUM, world);
  BOTH(Allgather, 1, MPI_IN_PLACE, 0, MPI_INT, r, n, MPI_INT, world);
  BOTH(Alltoall, 1, MPI_IN_PLACE, 0, MPI_INT, r, n, MPI_INT, world);
}

/* kMany sums, each beside a persistent message in a ring. */
static void make(MPI_Comm comm) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (int i = 0; i < kMany; ++i) {
    NAMED(Allreduce_init)(mine[i], sums[i], kCount, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[2 * i]);
    if (i % 2) MPI_Send_init(&messages[i - 1], 1, MPI_INT, next, i, MPI_COMM_WORLD, &requests[2 * i + 1]);
    else MPI_Recv_init(&messages[kMany + i], 1, MPI_INT, before, i + 1, MPI_COMM_WORLD, &requests[2 * i + 1]);
  }
}

static void fill(int round) {
  for (int i = 0; i < kMany; ++i) {
    for (int k = 0; k < kCount; ++k) mine[i][k] = rank + i + k + round;
    memset(sums[i], 0, sizeof sums[i]);
    messages[i] = rank * 100 + i + round;
  }
}

static int right_sums(int round) {
  const int before = (rank + size - 1) % size;
  for (int i = 0; i < kMany; ++i) {
    for (int k = 0; k < kCount; ++k)
      if (sums[i][k] != size * (size - 1) / 2 + size * (i + k + round)) return 0;
    if (i % 2 == 0 && messages[kMany + i] != before * 100 + i + round) return 0;
  }
  return 1;
}

static void start(int round) {
  const int n = 2 * kMany;
  fill(round);
  if (round % 3 == 0) MPI_Startall(n, requests);
  else if ((round + rank) % 2) /* another order on each other rank */
    for (int i = 0; i < n; ++i) MPI_Start(&requests[i]);
  else
    for (int i = n - 1; i >= 0; --i) MPI_Start(&requests[i]);
}

static void every_way(MPI_Comm comm) {
  int flag = 0, index, some, indices[2 * kMany], left = 2 * kMany, round = 0;
  const int n = 2 * kMany;
  make(comm);
  start(round);
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  check("Waitall", right_sums(round));
  start(++round);
  for (int i = n - 1; i >= 0; --i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  check("Wait, the last first", right_sums(round));
  start(++round);
  for (int i = 0; i < n; ++i) MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE);
  check("Waitany", right_sums(round));
  MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE);
  check("Waitany of none", index == MPI_UNDEFINED);
  start(++round);
  for (; left > 0; left -= some) MPI_Waitsome(n, requests, &some, indices, MPI_STATUSES_IGNORE);
  check("Waitsome", right_sums(round));
  start(++round);
  for (flag = 0; !flag;) MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE);
  check("Testall", right_sums(round));
  start(++round);
  for (int i = n - 1; i >= 0; --i)
    for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
  check("Test, the last first", right_sums(round));
  start(++round);
  for (int i = 0; i < n; i += flag) MPI_Testany(n, requests, &index, &flag, MPI_STATUS_IGNORE);
  check("Testany", right_sums(round));
  start(++round);
  for (flag = 0; !flag;) MPI_Request_get_status(requests[n - 2], &flag, MPI_STATUS_IGNORE);
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  check("Request_get_status", right_sums(round));
  for (int i = 0; i < n; ++i) MPI_Request_free(&requests[i]);
}

/* The type, the lists and the communicator end before the first start, which comes late on rank 0. MPI forbids to end
 * the lists; Fortran's bindings do it. */
static void freed_before(void) {
  MPI_Comm copy;
  MPI_Datatype gaps;
  MPI_Request request;
  int wrong_ones = 0, *lists = malloc(2 * (size_t)size * sizeof *lists);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  int* buffer = calloc((size_t)size * 4, sizeof *buffer);
  for (int i = 0; i < size; ++i) lists[i] = 1, lists[size + i] = size - 1 - i;
  int own[3] = {0, 0, 0};
  NAMED(Allgatherv_init)(own, 1, gaps, buffer, lists, lists + size, gaps, copy, MPI_INFO_NULL, &request);
  memset(lists, 0, 2 * (size_t)size * sizeof *lists);
  free(lists);
  MPI_Type_free(&gaps);
  MPI_Comm_free(&copy);
  if (rank == 0) usleep(50000);
  for (int round = 0; round < kRounds; ++round) {
    own[0] = rank + 1 + round;
    own[2] = rank + 2 + round;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; ++i) {
      const int* of = buffer + (size_t)(size - 1 - i) * 3;
      wrong_ones += of[0] != i + 1 + round || of[2] != i + 2 + round;
    }
  }
  MPI_Request_free(&request);
  check("what a call was made of, freed", wrong_ones == 0);
  free(buffer);
}

/* A call is made while a large message of the program's waits for its receiver, who makes it behind. */
static void beside_a_message(void) {
  enum { kLarge = 4 << 20 };
  MPI_Request message, call;
  int sum = 0;
  int* large = malloc(kLarge * sizeof *large);
  for (int i = 0; i < kLarge; ++i) large[i] = rank == 0 ? i : 0;
  if (rank == 0) MPI_Isend(large, kLarge, MPI_INT, 1, 7, MPI_COMM_WORLD, &message);
  if (rank == 1) MPI_Recv(large, kLarge, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  NAMED(Allreduce_init)(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &call);
  MPI_Start(&call);
  MPI_Wait(&call, MPI_STATUS_IGNORE);
  if (rank == 0) MPI_Wait(&message, MPI_STATUS_IGNORE);
  check("beside a message", sum == size * (size - 1) / 2 && (rank != 1 || large[kLarge - 1] == kLarge - 1));
  MPI_Request_free(&call);
  free(large);
}

/* Many calls one after another; some are never freed. */
static void made_and_freed(int times) {
  int sum = 0, wrong_ones = 0;
  for (int i = 0; i < times; ++i) {
    MPI_Request request;
    NAMED(Allreduce_init)(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (i % 2) {
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      wrong_ones += sum != size * (size - 1) / 2;
      sum = 0;
    }
    if (i % 50 != 49) MPI_Request_free(&request);
  }
  check("calls that are made and freed", wrong_ones == 0);
}

static void xor_of(void* a, void* b, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; ++i) ((int*)b)[i] ^= ((int*)a)[i];
}

/* MPI has an operator of the program's, a rank alone, and what moves nothing. */
static void passed_on(void) {
  MPI_Op op;
  MPI_Op_create(xor_of, 1, &op);
  BOTH(Allreduce, 0, in, r, 100, MPI_INT, op, MPI_COMM_WORLD);
  BOTH(Allreduce, 0, in, r, 100, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  BOTH(Allreduce, 0, in, r, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Op_free(&op);
}

static MPI_Request twice;
static void ask_for_it(MPI_Comm* comm, int* error, ...) {
  int flag;
  (void)comm, (void)error;
  MPI_Test(&twice, &flag, MPI_STATUS_IGNORE);
}

/* Of a request that is started, MPI_Start is an error, and one of those that follow is right. The error handler asks for
 * the request. */
static void started_twice(void) {
  int sum = 0;
  MPI_Errhandler asking;
  MPI_Comm_create_errhandler(ask_for_it, &asking);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, asking);
  NAMED(Allreduce_init)(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &twice);
  for (int round = 0; round < kRounds; ++round) {
    sum = 0;
    MPI_Start(&twice);
    check("a start of what is started", MPI_Start(&twice) != MPI_SUCCESS);
    MPI_Wait(&twice, MPI_STATUS_IGNORE);
    check("what was started twice", sum == size * (size - 1) / 2);
  }
  MPI_Request_free(&twice);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&asking);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  MPI_Comm copy;
  MPI_Datatype gaps;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Type_vector(3, 2, 4, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  const int sizes[] = {1, 101, 1001};
  for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    each(sizes[i], MPI_INT);
    each(sizes[i], gaps);
  }
  every_way(MPI_COMM_WORLD);
  every_way(copy);
  if (argc > 1) freed_before();
  if (argc > 1) started_twice();
  passed_on();
  beside_a_message();
  made_and_freed(argc > 1 ? 200 : 4);
  MPI_Type_free(&gaps);
  MPI_Comm_free(&copy);
  return end();
}
