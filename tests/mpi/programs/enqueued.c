/* SPDX-License-Identifier: Apache-2.0
 * Calls in the order of a CUDA stream, beside what has to come: enqueued DRIVER. Linked to nothing of gdrx: it finds the
 * calls by their names, as another MPI has none. `enqueued DRIVER wrong`: errors of the program's. */
#define _GNU_SOURCE
#include "both.h"
#include "gdrx/mpi_enqueue.h"
#include "gpu_memory.h"

#pragma weak MPIX_Info_set_hex
#pragma weak MPIX_Stream_create
#pragma weak MPIX_Stream_free
#pragma weak MPIX_Stream_comm_create
#pragma weak MPIX_Allreduce_enqueue
#pragma weak MPIX_Reduce_enqueue
#pragma weak MPIX_Reduce_scatter_block_enqueue
#pragma weak MPIX_Bcast_enqueue
#pragma weak MPIX_Allgather_enqueue
#pragma weak MPIX_Alltoall_enqueue
#pragma weak MPIX_Send_enqueue
#pragma weak MPIX_Recv_enqueue

enum { kPart = 1 << 16, kN = 1000 };
static void* stream;
static int (*synchronize)(void*);
static int (*make_stream)(void**, unsigned);
static int (*set_later)(unsigned long long, int, size_t, void*); /* CUDA's runtime has it by bytes */
static int on_gpu, in_place;
static const int *s;
static int *numbers_in, *numbers_got, *to, failed;

/* A call waits for what is in the stream before it: there the input is written. */
static void prepare(void) {
  for (int i = 0; i < kPart / 4; ++i) numbers_in[i] = rank * 1000 + i;
  memset(got, kPattern, kPart);
  write_gpu(gpu_in, in, kPart);
  write_gpu(gpu_out, got, kPart);
  s = on_gpu ? (int*)gpu_in : numbers_in;
  to = on_gpu ? (int*)gpu_out : numbers_got;
  if (on_gpu) set_later(gpu_in, 7, 4, stream); /* the first number is the same on every rank */
  else numbers_in[0] = 0x07070707;
}

static int value_of(int of, int i) { return i == 0 ? 0x07070707 : of * 1000 + i; }
static int sum_at(int i) {
  int sum = 0;
  for (int of = 0; of < size; ++of) sum += value_of(of, i);
  return sum;
}

static void check(const char* name, int result, int count, int (*expected)(int)) {
  ++checks;
  if (result != MPI_SUCCESS) differs(name, "the result");
  synchronize(stream);
  if (on_gpu) read_gpu(got, in_place ? gpu_in : gpu_out, kPart);
  for (int i = 0; i < count; ++i) {
    if (numbers_got[i] == expected(i)) continue;
    printf("%s: %d is %d, not %d\n", name, i, numbers_got[i], expected(i));
    differs(name, "a number");
    break;
  }
  if (!in_place && got[4 * count] != kPattern) differs(name, "memory behind");
}

static int part_of_sum(int i) { return sum_at(rank * kN + i); }
static int gathered(int i) { return value_of(i / kN, i % kN); }
static int exchanged(int i) { return value_of(i / kN, rank * kN + i % kN); }
static int of_root(int i) { return value_of(1, i); }
static int of_before(int i) { return value_of((rank + size - 1) % size, i); }

static void all(MPI_Comm comm) {
  int result = MPI_SUCCESS;
  prepare();
  check("Allreduce", MPIX_Allreduce_enqueue(s, to, kN, MPI_INT, MPI_SUM, comm), kN, sum_at);
  prepare();
  if (!on_gpu) memcpy(to, s, 4 * kN);
  result = MPIX_Allreduce_enqueue(MPI_IN_PLACE, on_gpu ? (void*)s : to, kN, MPI_INT, MPI_SUM, comm);
  in_place = on_gpu;
  check("Allreduce in place", result, kN, sum_at);
  in_place = 0;
  prepare();
  const int reduced = MPIX_Reduce_enqueue(s, to, kN, MPI_INT, MPI_SUM, 1, comm);
  check("Reduce", reduced, rank == 1 ? kN : 0, sum_at);
  prepare();
  check("Reduce_scatter_block", MPIX_Reduce_scatter_block_enqueue(s, to, kN, MPI_INT, MPI_SUM, comm), kN, part_of_sum);
  prepare();
  check("Allgather", MPIX_Allgather_enqueue(s, kN, MPI_INT, to, kN, MPI_INT, comm), size * kN, gathered);
  prepare();
  check("Alltoall", MPIX_Alltoall_enqueue(s, kN, MPI_INT, to, kN, MPI_INT, comm), size * kN, exchanged);
  prepare();
  check("Bcast", MPIX_Bcast_enqueue(rank == 1 ? (void*)s : to, kN, MPI_INT, 1, comm), rank == 1 ? 0 : kN, of_root);
  /* A ring: those of even rank send first. */
  MPI_Status status;
  int count = 0;
  prepare();
  result = MPI_SUCCESS;
  for (int turn = 0; turn < 2; ++turn) {
    if (rank % 2 == turn) result |= MPIX_Send_enqueue(s, kN, MPI_INT, (rank + 1) % size, 5, comm);
    else result |= MPIX_Recv_enqueue(to, kN, MPI_INT, (rank + size - 1) % size, 5, comm, &status);
  }
  MPI_Get_count(&status, MPI_INT, &count);
  check("Send and Recv", result, kN, of_before);
  if (count != kN || status.MPI_SOURCE != (rank + size - 1) % size || status.MPI_TAG != 5) differs("Recv", "the status");
  /* It is a communicator like any other, too. */
  int mine = rank, sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  if (sum != size * (size - 1) / 2) differs("Allreduce", "the sum of another call");
}

/* Who is late comes after the first rank's call has returned, whatever it is. */
static void returns_at_once(MPI_Comm comm) {
  for (int which = 0; which < 6; ++which) {
    int word = 0, result = MPI_SUCCESS;
    prepare();
    if (rank > 0) MPI_Recv(&word, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (which == 0) result = MPIX_Allreduce_enqueue(s, to, kN, MPI_INT, MPI_SUM, comm);
    if (which == 1) result = MPIX_Reduce_enqueue(s, to, kN, MPI_INT, MPI_SUM, 0, comm);
    if (which == 2) result = MPIX_Reduce_scatter_block_enqueue(s, to, kN, MPI_INT, MPI_SUM, comm);
    if (which == 3) result = MPIX_Allgather_enqueue(s, kN, MPI_INT, to, kN, MPI_INT, comm);
    if (which == 4) result = MPIX_Alltoall_enqueue(s, kN, MPI_INT, to, kN, MPI_INT, comm);
    if (which == 5) result = MPIX_Bcast_enqueue(rank == 1 ? (void*)s : to, kN, MPI_INT, 1, comm);
    for (int other = 1; rank == 0 && other < size; ++other) MPI_Send(&word, 1, MPI_INT, other, 9, MPI_COMM_WORLD);
    if (which == 0) check("Allreduce of late ranks", result, kN, sum_at);
    if (which == 1) check("Reduce of late ranks", result, rank == 0 ? kN : 0, sum_at);
    if (which == 2) check("Reduce_scatter_block of late ranks", result, kN, part_of_sum);
    if (which == 3) check("Allgather of late ranks", result, size * kN, gathered);
    if (which == 4) check("Alltoall of late ranks", result, size * kN, exchanged);
    if (which == 5) check("Bcast of late ranks", result, rank == 1 ? 0 : kN, of_root);
  }
}

/* Each is MPI's error, and the next call goes on. */
static void expect_code(const char* name, int code, int class_of_it) {
  int is = MPI_SUCCESS;
  ++checks;
  MPI_Error_class(code, &is);
  if (is != class_of_it) differs(name, "the error's class"), printf("%d, not %d\n", is, class_of_it);
}

static void errors(MPI_Comm comm) {
  MPI_Datatype gaps;
  MPI_Type_vector(2, 1, 3, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  prepare();
  expect_code("a type with gaps", MPIX_Bcast_enqueue(to, 4, gaps, 0, comm), MPI_ERR_TYPE);
  expect_code("a rank that is none", MPIX_Send_enqueue(s, 4, MPI_INT, size, 0, comm), MPI_ERR_RANK);
  expect_code("any source", MPIX_Recv_enqueue(to, 4, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE), MPI_ERR_RANK);
  expect_code("a root that is none", MPIX_Bcast_enqueue(to, 4, MPI_INT, size, comm), MPI_ERR_ARG);
  MPI_Info info;
  MPIX_Stream none = MPIX_STREAM_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "type", "cudaStream_t");
  MPI_Info_set(info, "value", "no number");
  expect_code("a value that is none", MPIX_Stream_create(info, &none), MPI_ERR_INFO);
  MPI_Info_free(&info);
  if (MPIX_Allreduce_enqueue(s, to, kN, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS) differs("no stream", "the result");
  check("Allreduce", MPIX_Allreduce_enqueue(s, to, kN, MPI_INT, MPI_SUM, comm), kN, sum_at);
  MPI_Type_free(&gaps);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  numbers_in = (int*)in;
  numbers_got = (int*)got;
  load(argv[1], kPart);
  void* library = dlopen(argv[1], RTLD_NOW);
  synchronize = (__typeof__(synchronize))dlsym(library, "cuStreamSynchronize");
  make_stream = (__typeof__(make_stream))dlsym(library, "cuStreamCreate");
  set_later = (__typeof__(set_later))dlsym(library, "cudaMemsetAsync");
  if (make_stream(&stream, 1) != 0) failed = 1;
  MPI_Info info;
  MPIX_Stream handle = MPIX_STREAM_NULL;
  MPI_Comm comm;
  MPI_Info_create(&info);
  MPI_Info_set(info, "type", "cudaStream_t");
  MPIX_Info_set_hex(info, "value", &stream, sizeof stream);
  MPIX_Stream_create(info, &handle);
  MPI_Info_free(&info);
  MPIX_Stream_comm_create(MPI_COMM_WORLD, handle, &comm);
  for (on_gpu = 1; on_gpu >= 0; --on_gpu) all(comm);
  on_gpu = 1;
  returns_at_once(comm);
  if (argc > 2) errors(comm);
  MPI_Comm_free(&comm);
  MPIX_Stream_free(&handle);
  if (handle != MPIX_STREAM_NULL || failed) differs("a stream", "its end");
  return end();
}
