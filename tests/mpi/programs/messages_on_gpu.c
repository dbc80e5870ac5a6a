/* SPDX-License-Identifier: Apache-2.0
 * Messages, and calls that have requests, whose buffers are on a GPU: in every form, beside what has to come.
 * messages_on_gpu DRIVER; messages_on_gpu DRIVER refused: a window alone. */
#include "both.h"
#include "gpu_memory.h"

#if defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define NAMED(name) MPIX_##name
#else
#define NAMED(name) MPI_##name
#endif

enum { kPart = 1 << 16, kN = 3000, kRounds = 3 };
static const MPI_Comm world = MPI_COMM_WORLD;
static int next, before, round_number;
static char expected[kPart];
static const void* s;
static MPI_Request q[2];
static int kinds; /* bit 0: what is sent, bit 1: what is received is on the GPU; of odd ranks the other way round */

static char byte_of(int of, int i) { return (char)(of * 31 + i * 7 + i / 251 + round_number * 13); }

static int here(void) { return rank % 2 ? (kinds >> 1 | kinds << 1) & 3 : kinds; }

/* Buffers anew; `bytes` of the rank before are to come, and behind them nothing changes. */
static void prepare(int bytes) {
  ++round_number;
  for (int i = 0; i < kPart; ++i) in[i] = byte_of(rank, i);
  memset(got, kPattern, kPart);
  memset(expected, kPattern, kPart);
  for (int i = 0; i < bytes; ++i) expected[i] = byte_of(before, i);
  write_gpu(gpu_in, in, kPart);
  write_gpu(gpu_out, got, kPart);
  s = here() & 1 ? (void*)gpu_in : in;
  r = here() & 2 ? (char*)gpu_out : got;
}

static void check(const char* what) {
  if (here() & 2) read_gpu(got, gpu_out, kPart);
  ++checks;
  if (memcmp(got, expected, kPart) != 0) differs(what, "memory on a GPU");
}

#define TO s, kN, MPI_INT, next, 5, world
#define FROM r, kN, MPI_INT, before, 5, world
/* Sends as `name` does, to a receive that is there already. */
#define CHECK_SEND(name)                     \
  do {                                       \
    prepare(4 * kN);                         \
    MPI_Irecv(FROM, &q[0]);                  \
    MPI_Barrier(world);                      \
    MPI_##name(TO);                          \
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);      \
    check(#name);                            \
  } while (0)
#define CHECK_REQUESTS(name, ...)            \
  do {                                       \
    int flag = 0, index = 0, some = 0, list[2]; \
    prepare(4 * kN);                         \
    MPI_Irecv(FROM, &q[0]);                  \
    MPI_Barrier(world);                      \
    MPI_##name(TO, &q[1]);                   \
    (void)flag, (void)index, (void)some, (void)list; \
    __VA_ARGS__;                             \
    check(#name " " #__VA_ARGS__);           \
    if (q[0] != MPI_REQUEST_NULL || q[1] != MPI_REQUEST_NULL) differs(#name, "a request"); \
  } while (0)

static void blocking(void) {
  CHECK_SEND(Send);
  CHECK_SEND(Ssend);
  CHECK_SEND(Rsend);
  static char room[1 << 17];
  MPI_Buffer_attach(room, sizeof room);
  CHECK_SEND(Bsend);
  int bytes = 0;
  void* detached;
  MPI_Buffer_detach(&detached, &bytes);
  prepare(4 * kN);
  MPI_Isend(TO, &q[0]);
  MPI_Recv(FROM, MPI_STATUS_IGNORE);
  MPI_Wait(&q[0], MPI_STATUS_IGNORE);
  check("Recv");
  prepare(4 * 10); /* less than there is room for */
  MPI_Status status;
  int count = 0;
  MPI_Isend(s, 10, MPI_INT, next, 5, world, &q[0]);
  MPI_Recv(FROM, &status);
  MPI_Wait(&q[0], MPI_STATUS_IGNORE);
  MPI_Get_count(&status, MPI_INT, &count);
  check("Recv of less");
  if (count != 10) differs("Recv of less", "the count");
  prepare(4 * kN);
  MPI_Sendrecv(s, kN, MPI_INT, next, 6, r, kN, MPI_INT, before, 6, world, MPI_STATUS_IGNORE);
  check("Sendrecv");
  prepare(4 * kN);
  if (here() & 2) write_gpu(gpu_out, in, kPart);
  else memcpy(got, in, kPart);
  memcpy(expected + 4 * kN, in + 4 * kN, kPart - 4 * kN);
  MPI_Sendrecv_replace(r, kN, MPI_INT, next, 6, before, 6, world, MPI_STATUS_IGNORE);
  check("Sendrecv_replace");
}

static void requests(void) {
  CHECK_REQUESTS(Isend, MPI_Waitall(2, q, MPI_STATUSES_IGNORE));
  CHECK_REQUESTS(Issend, MPI_Wait(&q[1], MPI_STATUS_IGNORE); MPI_Wait(&q[0], MPI_STATUS_IGNORE));
  CHECK_REQUESTS(Irsend, for (int i = 0; i < 2; ++i) MPI_Waitany(2, q, &index, MPI_STATUS_IGNORE));
  CHECK_REQUESTS(Isend, for (int i = 0; i < 2; i += some) MPI_Waitsome(2, q, &some, list, MPI_STATUSES_IGNORE));
  CHECK_REQUESTS(Isend, while (!flag) MPI_Testall(2, q, &flag, MPI_STATUSES_IGNORE));
  CHECK_REQUESTS(Isend, for (int i = 0; i < 2; i += flag) MPI_Testany(2, q, &index, &flag, MPI_STATUS_IGNORE));
  CHECK_REQUESTS(Isend, for (int i = 0; i < 2; i += some) MPI_Testsome(2, q, &some, list, MPI_STATUSES_IGNORE));
  CHECK_REQUESTS(Isend, for (int i = 0; i < 2; ++i) for (flag = 0; !flag;) MPI_Test(&q[i], &flag, MPI_STATUS_IGNORE));
  /* What has come may be read as soon as the status says so. */
  CHECK_REQUESTS(Isend, while (!flag) MPI_Request_get_status(q[0], &flag, MPI_STATUS_IGNORE); check("Request_get_status");
                 if (here() & 2) write_gpu(gpu_out, &(char){++expected[0]}, 1); else r[0] = ++expected[0];
                 MPI_Waitall(2, q, MPI_STATUSES_IGNORE));
}

static void probed(void) {
  MPI_Message message;
  MPI_Status status;
  prepare(4 * kN);
  MPI_Isend(TO, &q[0]);
  MPI_Mprobe(before, 5, world, &message, &status);
  MPI_Mrecv(r, kN, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Wait(&q[0], MPI_STATUS_IGNORE);
  check("Mrecv");
  prepare(4 * kN);
  MPI_Isend(TO, &q[0]);
  MPI_Mprobe(before, 5, world, &message, &status);
  MPI_Imrecv(r, kN, MPI_INT, &message, &q[1]);
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  check("Imrecv");
}

/* Started again and again, with what is in the buffers then. */
#define CHECK_PERSISTENT(name)                                     \
  do {                                                             \
    prepare(4 * kN);                                               \
    MPI_Recv_init(FROM, &q[0]);                                    \
    MPI_##name(TO, &q[1]);                                         \
    for (int i = 0; i < kRounds; ++i) {                            \
      prepare(4 * kN);                                             \
      MPI_Start(&q[0]);                                            \
      MPI_Barrier(world);                                          \
      if (i % 2) MPI_Startall(1, &q[1]);                           \
      else MPI_Start(&q[1]);                                       \
      if (i == 0) MPI_Waitall(2, q, MPI_STATUSES_IGNORE);          \
      else for (int k = 1; k >= 0; --k) MPI_Wait(&q[k], MPI_STATUS_IGNORE); \
      check(#name);                                                \
    }                                                              \
    MPI_Request_free(&q[0]);                                       \
    MPI_Request_free(&q[1]);                                       \
  } while (0)

static void persistent(void) {
  CHECK_PERSISTENT(Send_init);
  CHECK_PERSISTENT(Ssend_init);
  CHECK_PERSISTENT(Rsend_init);
}

static void typed(void) {
  MPI_Datatype gaps;
  MPI_Type_vector(2, 1, 3, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  prepare(0);
  for (int i = 0; i < 100; ++i) { /* extent 4 ints: the first and the last of them */
    for (int b = 0; b < 4; ++b) {
      expected[16 * i + b] = byte_of(before, 16 * i + b);
      expected[16 * i + 12 + b] = byte_of(before, 16 * i + 12 + b);
    }
  }
  MPI_Sendrecv(s, 100, gaps, next, 6, r, 100, gaps, before, 6, world, MPI_STATUS_IGNORE);
  check("a type with gaps");
  MPI_Type_free(&gaps);
  prepare(0);
  char packed[4 * kN];
  int at = 0;
  MPI_Pack(s, kN, MPI_INT, packed, sizeof packed, &at, world);
  at = 0;
  MPI_Unpack(packed, sizeof packed, &at, r, kN, MPI_INT, world);
  for (int i = 0; i < 4 * kN; ++i) expected[i] = byte_of(rank, i);
  check("Pack and Unpack");
}

/* A write by the program to what no call has, while calls are under way. */
static void computes(int at, char value) {
  expected[at] = value;
  if (here() & 2) write_gpu(gpu_out + (unsigned)at, &value, 1);
  else r[at] = value;
}

/* Two columns of one array, as of a halo, each by a request of its own. */
static void columns(void) {
  enum { kRow = 64, kRows = 100 };
  MPI_Datatype column;
  MPI_Type_vector(kRows, 1, kRow / 4, MPI_INT, &column);
  MPI_Type_commit(&column);
  prepare(0);
  for (int row = 0; row < kRows; ++row) {
    for (int b = 0; b < 4; ++b) {
      expected[kRow * row + b] = byte_of(before, kRow * row + 32 + b);
      expected[kRow * row + 60 + b] = byte_of(before, kRow * row + b);
    }
  }
  MPI_Request all[4];
  MPI_Irecv(r, 1, column, before, 1, world, &all[0]);
  MPI_Irecv(r + 60, 1, column, before, 2, world, &all[1]);
  MPI_Isend((const char*)s + 32, 1, column, next, 1, world, &all[2]);
  MPI_Isend(s, 1, column, next, 2, world, &all[3]);
  computes(kRow * 7 + 20, 77);
  MPI_Waitall(4, all, MPI_STATUSES_IGNORE);
  check("two columns");
  MPI_Type_free(&column);
}

/* Requests that are done at once may have one handle; those of nobody change nothing. */
static void done_at_once(void) {
  prepare(0);
  for (int i = 0; i < 200; ++i) expected[i] = byte_of(rank, i);
  MPI_Iallreduce(s, r, 25, MPI_INT, MPI_SUM, MPI_COMM_SELF, &q[0]);
  MPI_Iallreduce((const char*)s + 100, r + 100, 25, MPI_INT, MPI_SUM, MPI_COMM_SELF, &q[1]);
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  check("two sums of one rank");
  prepare(0);
  MPI_Irecv(r, kN, MPI_INT, MPI_PROC_NULL, 5, world, &q[0]);
  computes(100, 77);
  MPI_Wait(&q[0], MPI_STATUS_IGNORE);
  check("a receive from nobody");
}

/* A request that is freed before it is done: that it is done says another message. */
static void freed(void) {
  int word = 0;
  prepare(4 * kN);
  MPI_Irecv(FROM, &q[0]);
  MPI_Request_free(&q[0]);
  if (q[0] != MPI_REQUEST_NULL) differs("a request", "freed");
  MPI_Barrier(world);
  MPI_Send(TO);
  MPI_Sendrecv(&rank, 1, MPI_INT, next, 9, &word, 1, MPI_INT, before, 9, world, MPI_STATUS_IGNORE);
  check("a request that was freed");
}

/* Into a GPU's memory, part by part. */
static void packed_there(void) {
  prepare(0);
  int at = 100;
  for (int i = 0; i < 80; ++i) expected[100 + i] = byte_of(rank, i % 40);
  MPI_Pack(s, 10, MPI_INT, r, kPart, &at, world);
  MPI_Pack(s, 10, MPI_INT, r, kPart, &at, world);
  check("Pack at a place");
}

/* Sums of ints by requests. */
static void sums(void) {
  for (int form = 0; form < 2; ++form) {
    prepare(0);
    if (form == 1) NAMED(Allreduce_init)(s, r, kN, MPI_INT, MPI_BXOR, world, MPI_INFO_NULL, &q[0]);
    for (int i = 0; i < kRounds; ++i) {
      prepare(0);
      for (int b = 0; b < 4 * kN; ++b) {
        expected[b] = 0;
        for (int of = 0; of < size; ++of) expected[b] ^= byte_of(of, b);
      }
      if (form == 0) MPI_Iallreduce(s, r, kN, MPI_INT, MPI_BXOR, world, &q[0]);
      else MPI_Start(&q[0]);
      MPI_Wait(&q[0], MPI_STATUS_IGNORE);
      check(form ? "Allreduce_init" : "Iallreduce");
    }
    if (form == 1) MPI_Request_free(&q[0]);
  }
  prepare(0);
  if (rank == 0) memcpy(expected, in, 4 * kN);
  else for (int i = 0; i < 4 * kN; ++i) expected[i] = byte_of(0, i);
  if (rank == 0 && here() & 2) write_gpu(gpu_out, in, 4 * kN);
  else if (rank == 0) memcpy(got, in, 4 * kN);
  MPI_Ibcast(r, kN, MPI_INT, 0, world, &q[0]);
  MPI_Wait(&q[0], MPI_STATUS_IGNORE);
  check("Ibcast");
}

/* In a ring: two neighbours, which may be one. A block is 100 ints, and comes from the one before and the next. */
static void neighbours(void) {
  enum { kBlock = 400 };
  MPI_Comm ring;
  const int periods[] = {1}, sizes[] = {size}, after = (rank + 1) % size;
  MPI_Cart_create(world, 1, sizes, periods, 0, &ring);
  for (int form = 0; form < 3; ++form) {
    prepare(0);
    for (int i = 0; i < kBlock; ++i) { /* of two ranks the lower neighbour is the upper one, too */
      expected[i] = byte_of(before, form == 0 ? i : kBlock + i);
      expected[kBlock + i] = byte_of(after, i);
    }
    const int n[] = {100, 100};
    const MPI_Aint d[] = {0, kBlock};
    const MPI_Datatype t[] = {MPI_INT, MPI_INT};
    if (form == 0) MPI_Neighbor_allgather(s, 100, MPI_INT, r, 100, MPI_INT, ring);
    if (form == 1) MPI_Neighbor_alltoallw(s, n, d, t, r, n, d, t, ring);
    if (form == 2) {
      MPI_Ineighbor_alltoall(s, 100, MPI_INT, r, 100, MPI_INT, ring, &q[0]);
      MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    }
    if (size > 2 || form == 0) check(form ? "Neighbor_alltoall" : "Neighbor_allgather");
  }
  MPI_Comm_free(&ring);
  prepare(0);
  MPI_Datatype types[64];
  int n[64], d[64];
  for (int i = 0; i < size; ++i) {
    types[i] = MPI_INT;
    n[i] = 100;
    d[i] = kBlock * i;
    for (int b = 0; b < kBlock; ++b) expected[kBlock * i + b] = byte_of(i, kBlock * rank + b);
  }
  MPI_Alltoallw(s, n, d, types, r, n, d, types, world);
  check("Alltoallw");
}

/* What MPI would keep or write to for long is refused. */
static void refused(void) {
  MPI_Win window;
  MPI_Win_create((void*)gpu_in, kPart, 1, MPI_INFO_NULL, world, &window);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  next = (rank + 1) % size;
  before = (rank + size - 1) % size;
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, world);
  load(argv[1], kPart);
  if (argc > 2) refused();
  for (kinds = 0; kinds < 4; ++kinds) {
    blocking();
    requests();
    probed();
    persistent();
    typed();
    columns();
    done_at_once();
    freed();
    packed_there();
    sums();
    neighbours();
  }
  return end();
}
