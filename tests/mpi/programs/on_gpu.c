/* SPDX-License-Identifier: Apache-2.0
 * Blocking collectives whose buffers are on a GPU on some ranks and in host memory on others, beside MPI's own result in
 * host memory alone. The driver is loaded after MPI_Init: on_gpu DRIVER. `on_gpu DRIVER once`: a broadcast alone. */
#include "both.h"
#include "gpu_memory.h"

enum { kPart = 1 << 16, kMost = 64, kN = 300 };
static int counts[kMost], places[kMost], part[kMost], part_places[kMost];
static const void* s;

/* kinds: bit 0 what is sent, bit 1 what is received is on the GPU, where this rank's bit of `ranks` is set. */
#define CHECK(name, ...)                                                            \
  do {                                                                              \
    for (int kinds = 1; kinds < 4; ++kinds) {                                       \
      for (int ranks = 0; ranks < 4; ++ranks) {                                     \
        const int here = ranks == 3 || rank % 2 == ranks % 2 ? kinds : 0;           \
        memset(got, kPattern, kPart);                                               \
        memset(want, kPattern, kPart);                                              \
        write_gpu(gpu_in, in, kPart);                                               \
        write_gpu(gpu_out, got, kPart);                                             \
        s = here & 1 ? (void*)gpu_in : in;                                          \
        r = here & 2 ? (char*)gpu_out : got;                                        \
        MPI_##name(__VA_ARGS__);                                                    \
        if (here & 2) read_gpu(got, gpu_out, kPart);                                \
        s = in;                                                                     \
        r = want;                                                                   \
        ((__typeof__(&MPI_##name))real("PMPI_" #name))(__VA_ARGS__);                \
        ++checks;                                                                   \
        if (memcmp(got, want, kPart) != 0) differs(#name, "memory on GPUs");        \
      }                                                                             \
    }                                                                               \
  } while (0)

int main(int argc, char** argv) {
  begin(argc, argv);
  const MPI_Comm world = MPI_COMM_WORLD;
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, world); /* the driver comes after gdrx's first look */
  load(argv[1], kPart);
  if (argc > 2) {
    MPI_Bcast((void*)gpu_in, 1, MPI_INT, 0, world);
    return end();
  }
  MPI_Datatype gaps;
  MPI_Type_vector(2, 1, 3, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  for (int i = 0; i < kPart; ++i) in[i] = (char)(rank * 31 + i * 7 + i / 251);
  for (int i = 0; i < size; ++i) {
    counts[i] = kN + i;
    places[i] = (size - 1 - i) * (kN + 50);
    part[i] = 7;
    part_places[i] = 20 * i;
  }
  CHECK(Allreduce, s, r, kN, MPI_INT, MPI_SUM, world);
  CHECK(Allreduce, MPI_IN_PLACE, r, kN, MPI_INT, MPI_SUM, world);
  CHECK(Reduce, s, r, kN, MPI_INT, MPI_MAX, 1, world);
  CHECK(Reduce_scatter_block, s, r, kN, MPI_INT, MPI_SUM, world);
  CHECK(Reduce_scatter, s, r, counts, MPI_INT, MPI_SUM, world);
  CHECK(Scan, s, r, kN, MPI_INT, MPI_SUM, world);
  CHECK(Exscan, s, r, kN, MPI_INT, MPI_SUM, world);
  CHECK(Bcast, r, kN, gaps, 1, world);
  CHECK(Allgather, s, kN, gaps, r, kN, gaps, world);
  CHECK(Allgatherv, s, counts[rank], MPI_INT, r, counts, places, MPI_INT, world);
  CHECK(Alltoall, s, kN, MPI_INT, r, kN, MPI_INT, world);
  CHECK(Alltoallv, s, part, part_places, MPI_INT, r, part, part_places, MPI_INT, world);
  CHECK(Gather, s, kN, MPI_INT, r, kN, MPI_INT, 1, world);
  CHECK(Gatherv, s, counts[rank], MPI_INT, r, counts, places, MPI_INT, 0, world);
  CHECK(Scatter, s, kN, gaps, r, kN, gaps, 1, world);
  CHECK(Scatterv, s, counts, places, MPI_INT, r, counts[rank], MPI_INT, 0, world);
  MPI_Type_free(&gaps);
  return end();
}
