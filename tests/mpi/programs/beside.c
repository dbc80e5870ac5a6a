/* SPDX-License-Identifier: Apache-2.0
 * Not a test: times of each collective by the hooks and by MPI behind them, in turns, call by call, of the slowest rank.
 *   GDRX_MPI=all gdrx mpirun -np 2 mpi_beside
 * Microseconds, medians, gdrx/MPI; * where gdrx was faster. Bytes are those of the whole call. */
#include <time.h>

#include "both.h"

enum { kWarm = 20, kMost = 300, kRanks = 256 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static __typeof__(&MPI_Barrier) barrier;
static __typeof__(&MPI_Allreduce) allreduce;
static int counts[kRanks], places[kRanks];

static void print(double times[2][kMost], int rounds) {
  for (int which = 0; which < 2; ++which) qsort(times[which], (size_t)rounds, sizeof(double), compare);
  const double ours = times[0][rounds / 2], theirs = times[1][rounds / 2];
  if (rank == 0) printf(" %.1f/%.1f%s", ours, theirs, ours < theirs ? "*" : "");
}

#define ROW(name, ...)                                                                              \
  do {                                                                                              \
    __typeof__(&MPI_##name) call[2] = {MPI_##name, (__typeof__(&MPI_##name))real("PMPI_" #name)};   \
    static double times[2][kMost];                                                                  \
    if (rank == 0) printf("%-20s", #name);                                                          \
    for (int bytes = 8; bytes <= 1 << 20; bytes *= 4) {                                             \
      const int block = bytes / size < 8 ? 8 : bytes / size / 8 * 8;                                \
      const int rounds = bytes >= 65536 ? 60 : size > 2 ? 100 : kMost;                              \
      for (int i = 0; i < size; ++i) places[i] = i * (counts[i] = block / 4);                       \
      for (int i = 0; i < rounds + kWarm; ++i) {                                                    \
        for (int which = 0; which < 2; ++which) {                                                   \
          double slowest;                                                                           \
          barrier(MPI_COMM_WORLD);                                                                  \
          double took = now();                                                                      \
          call[which](__VA_ARGS__);                                                                 \
          took = now() - took;                                                                      \
          allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);                       \
          if (i >= kWarm) times[which][i - kWarm] = slowest;                                        \
        }                                                                                           \
      }                                                                                             \
      print(times, rounds);                                                                         \
    }                                                                                               \
    if (rank == 0) printf("\n");                                                                    \
    fflush(stdout);                                                                                 \
  } while (0)

int main(int argc, char** argv) {
  begin(argc, argv);
  barrier = (__typeof__(barrier))real("PMPI_Barrier");
  allreduce = (__typeof__(allreduce))real("PMPI_Allreduce");
  memset(in, 0, kBytes);
  r = got;
  const MPI_Comm world = MPI_COMM_WORLD;
  if (rank == 0) {
    printf("%-20s", "bytes");
    for (int bytes = 8; bytes <= 1 << 20; bytes *= 4) printf(" %d", bytes);
    printf("\n");
  }
  ROW(Allreduce, in, r, bytes / 4, MPI_FLOAT, MPI_SUM, world);
  ROW(Reduce, in, r, bytes / 4, MPI_FLOAT, MPI_SUM, 0, world);
  ROW(Reduce_scatter_block, in, r, block / 4, MPI_FLOAT, MPI_SUM, world);
  ROW(Reduce_scatter, in, r, counts, MPI_FLOAT, MPI_SUM, world);
  ROW(Scan, in, r, bytes / 4, MPI_FLOAT, MPI_SUM, world);
  ROW(Exscan, in, r, bytes / 4, MPI_FLOAT, MPI_SUM, world);
  ROW(Bcast, in, bytes, MPI_BYTE, 0, world);
  ROW(Allgather, in, block, MPI_BYTE, r, block, MPI_BYTE, world);
  ROW(Allgatherv, in, block, MPI_BYTE, r, counts, places, MPI_INT, world);
  ROW(Alltoall, in, block, MPI_BYTE, r, block, MPI_BYTE, world);
  ROW(Alltoallv, in, counts, places, MPI_INT, r, counts, places, MPI_INT, world);
  ROW(Gather, in, block, MPI_BYTE, r, block, MPI_BYTE, 0, world);
  ROW(Gatherv, in, block, MPI_BYTE, r, counts, places, MPI_INT, 0, world);
  ROW(Scatter, in, block, MPI_BYTE, r, block, MPI_BYTE, 0, world);
  ROW(Scatterv, in, counts, places, MPI_INT, r, block, MPI_BYTE, 0, world);
  ROW(Barrier, world);
  MPI_Finalize();
  return 0;
}
