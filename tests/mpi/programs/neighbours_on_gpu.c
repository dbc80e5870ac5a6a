/* SPDX-License-Identifier: Apache-2.0
 * Calls of neighbours, Alltoallw and packing whose buffers are on a GPU, in the forms of MPI 4: by counts of 64 bits, and
 * persistent. Beside MPI's own results in host memory: neighbours_on_gpu DRIVER. */
#include "both.h"
#include "gpu_memory.h"

#if defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define NAMED(name) MPIX_##name
#else
#define NAMED(name) MPI_##name
#endif
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

enum { kPart = 1 << 16, kBlock = 400, kN = kBlock / 4, kMost = 64, kRounds = 3 };
static MPI_Comm ring;
static const void* s;
static MPI_Request q;

/* Each call has both buffers on the GPU, then both in host memory. A round has other data. */
static void prepare(int on_gpu, int round) {
  for (int i = 0; i < kPart; ++i) in[i] = (char)(rank * 31 + i * 7 + i / 251 + round * 13);
  if (on_gpu) {
    write_gpu(gpu_in, in, kPart);
    if (round == 0) memset(got, kPattern, kPart), write_gpu(gpu_out, got, kPart);
  } else if (round == 0) {
    memset(want, kPattern, kPart);
  }
  s = on_gpu ? (void*)gpu_in : in;
  r = on_gpu ? (char*)gpu_out : want;
}

static void check(const char* name) {
  read_gpu(got, gpu_out, kPart);
  ++checks;
  if (memcmp(got, want, kPart) != 0) differs(name, "memory on a GPU");
}

#define CHECK(function, ...)                                                    \
  do {                                                                          \
    prepare(1, 0);                                                              \
    function(__VA_ARGS__);                                                      \
    prepare(0, 0);                                                              \
    function(__VA_ARGS__);                                                      \
    check(TEXT(function));                                                      \
  } while (0)
#define CHECK_WAITED(function, ...)                                             \
  do {                                                                          \
    for (int on_gpu = 1; on_gpu >= 0; --on_gpu) {                               \
      prepare(on_gpu, 0);                                                       \
      function(__VA_ARGS__, &q);                                                \
      MPI_Wait(&q, MPI_STATUS_IGNORE);                                          \
    }                                                                           \
    check(TEXT(function));                                                      \
  } while (0)
#define CHECK_STARTED(function, ...)                                            \
  do {                                                                          \
    for (int on_gpu = 1; on_gpu >= 0; --on_gpu) {                               \
      prepare(on_gpu, 0);                                                       \
      function(__VA_ARGS__, MPI_INFO_NULL, &q);                                 \
      for (int round = 0; round < kRounds; ++round) {                           \
        prepare(on_gpu, round);                                                 \
        MPI_Start(&q);                                                          \
        MPI_Wait(&q, MPI_STATUS_IGNORE);                                        \
      }                                                                         \
      MPI_Request_free(&q);                                                     \
    }                                                                           \
    check(TEXT(function));                                                      \
  } while (0)

#define EACH_OF(CHECK_ONE, NEIGHBORS, W)                                                            \
  do {                                                                                              \
    CHECK_ONE(NEIGHBORS(allgather), s, kN, MPI_INT, r, kN, MPI_INT, ring);                          \
    CHECK_ONE(NEIGHBORS(allgatherv), s, kN, MPI_INT, r, n, d, MPI_INT, ring);                       \
    CHECK_ONE(NEIGHBORS(alltoall), s, kN, MPI_INT, r, kN, MPI_INT, ring);                           \
    CHECK_ONE(NEIGHBORS(alltoallv), s, n, d, MPI_INT, r, n, d, MPI_INT, ring);                      \
    CHECK_ONE(NEIGHBORS(alltoallw), s, n, bytes, types, r, n, bytes, types, ring);                  \
    CHECK_ONE(W, s, n, wd, types, r, n, wd, types, MPI_COMM_WORLD);                                 \
  } while (0)

static MPI_Datatype types[kMost];
static MPI_Aint bytes[kMost];

static void persistent(void) {
  int n[kMost], d[kMost], wd[kMost];
  for (int i = 0; i < kMost; ++i) n[i] = kN, d[i] = i * (kN + 3), wd[i] = i * (kBlock + 8);
#define STARTED(name) NAMED(Neighbor_##name##_init)
  EACH_OF(CHECK_STARTED, STARTED, NAMED(Alltoallw_init));
}

static void external(void) {
  MPI_Aint at = 8;
  prepare(1, 0);
  MPI_Pack_external("external32", s, kN, MPI_INT, r, kPart, &at);
  prepare(0, 0);
  MPI_Aint at_there = at;
  at = 8;
  MPI_Pack_external("external32", s, kN, MPI_INT, r, kPart, &at);
  check("Pack_external");
  if (at != at_there) differs("Pack_external", "the place");
  at = 0;
  prepare(1, 0);
  MPI_Unpack_external("external32", s, kBlock, &at, r, kN, MPI_INT);
  prepare(0, 0);
  at = 0;
  MPI_Unpack_external("external32", s, kBlock, &at, r, kN, MPI_INT);
  check("Unpack_external");
}

#if MPI_VERSION >= 4
#define LARGE(name) MPI_Neighbor_##name##_c
#define LARGE_REQUEST(name) MPI_Ineighbor_##name##_c
#define LARGE_STARTED(name) MPI_Neighbor_##name##_init_c
static void large(int has_persistent) {
  MPI_Count n[kMost], at;
  MPI_Aint d[kMost], *wd = bytes;
  for (int i = 0; i < kMost; ++i) n[i] = kN, d[i] = i * (kN + 3);
  EACH_OF(CHECK, LARGE, MPI_Alltoallw_c);
  EACH_OF(CHECK_WAITED, LARGE_REQUEST, MPI_Ialltoallw_c);
  if (has_persistent) EACH_OF(CHECK_STARTED, LARGE_STARTED, MPI_Alltoallw_init_c);
  CHECK(MPI_Pack_c, s, kN, MPI_INT, r, kPart, (at = 100, &at), MPI_COMM_WORLD);
  if (at != 100 + kBlock) differs("Pack_c", "the place");
  CHECK(MPI_Unpack_c, s, kPart, (at = 40, &at), r, kN, MPI_INT, MPI_COMM_WORLD);
  if (at != 40 + kBlock) differs("Unpack_c", "the place");
  CHECK(MPI_Reduce_local_c, s, r, kN, MPI_INT, MPI_BXOR);
}
#endif

int main(int argc, char** argv) {
  begin(argc, argv);
  const int periods[] = {1}, sizes[] = {size};
  MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periods, 0, &ring);
  load(argv[1], kPart);
  for (int i = 0; i < kMost; ++i) types[i] = MPI_INT, bytes[i] = i * (kBlock + 8);
  persistent();
  external();
#if MPI_VERSION >= 4
  large(argc < 3); /* an older MPI has neither */
#endif
  MPI_Comm_free(&ring);
  return end();
}
