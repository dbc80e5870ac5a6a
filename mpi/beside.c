/* SPDX-License-Identifier: Apache-2.0
 * Times of each collective by the hooks and by MPI behind them, in turns, call by call, of the slowest rank.
 *   gdrx mpirun -np 2 mpi_beside             as the default has it
 *   GDRX_MPI=all gdrx mpirun -np 2 mpi_beside TABLE
 * Rows of ranks, collective, bytes of the whole call, and both medians in microseconds. TABLE: rank 0 appends to it where
 * gdrx was faster, for GDRX_MPI_TABLE; that is what `gdrx tune --mpi` does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kWarm = 20, kMost = 300, kRanks = 4096, kBytes = 4 << 20, kSizes = 24 };
static const double kFaster = 0.95; /* of MPI's time: less is noise */

static int rank, size, counts[kRanks], places[kRanks];
static char *in, *r;
static FILE* table;
static __typeof__(&MPI_Barrier) barrier;
static __typeof__(&MPI_Allreduce) allreduce;

#ifdef OPEN_MPI
static const char* const libraries[] = {"libmpi.so.40"};
#else
static const char* const libraries[] = {"libmpi.so.12", "libmpich.so.12"};
#endif

/* Behind every preloaded library. */
static void* real(const char* name) {
  void* found = NULL;
  for (unsigned i = 0; !found && i < sizeof libraries / sizeof *libraries; ++i) {
    void* library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
    if (library) found = dlsym(library, name);
  }
  if (!found) {
    fprintf(stderr, "mpi_beside: there is no %s in the MPI library\n", name);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return found;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

/* The ranges of sizes at which gdrx was faster; the last has no end if the largest size is in it. */
static void write_ranges(const char* name, const int* bytes, const int* faster, int n) {
  for (int i = 0; i < n; ++i) {
    if (!faster[i]) continue;
    const int first = i;
    while (i + 1 < n && faster[i + 1]) ++i;
    fprintf(table, "%d %s %d ", size, name, bytes[first]);
    if (i + 1 == n) fprintf(table, "-\n");
    else fprintf(table, "%d\n", bytes[i]);
  }
}

/* blocks: the call's size is a block's times the ranks. */
#define ROW(name, blocks, ...)                                                                    \
  do {                                                                                            \
    __typeof__(&MPI_##name) call[2] = {MPI_##name, (__typeof__(&MPI_##name))real("PMPI_" #name)}; \
    static double times[2][kMost];                                                                \
    int sizes[kSizes], faster[kSizes], n = 0, before = -1;                                        \
    for (int bytes = 8; bytes <= kBytes; bytes *= 2) {                                            \
      const int block = bytes / size < 8 ? 8 : bytes / size / 8 * 8;                              \
      const int whole = blocks == 0 ? bytes : blocks > 0 ? block * size : 0;                      \
      if (whole == before) continue;                                                              \
      before = whole;                                                                             \
      const int rounds = bytes >= 65536 ? 60 : size > 2 ? 100 : kMost;                            \
      for (int i = 0; i < size; ++i) places[i] = i * (counts[i] = block / 4);                     \
      for (int i = 0; i < rounds + kWarm; ++i) {                                                  \
        for (int turn = 0; turn < 2; ++turn) {                                                    \
          const int which = (turn + i) % 2;                                                       \
          double slowest;                                                                         \
          barrier(MPI_COMM_WORLD);                                                                \
          double took = now();                                                                    \
          call[which](__VA_ARGS__);                                                               \
          took = now() - took;                                                                    \
          allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);                     \
          if (i >= kWarm) times[which][i - kWarm] = slowest;                                      \
        }                                                                                         \
      }                                                                                           \
      for (int which = 0; which < 2; ++which) qsort(times[which], rounds, sizeof(double), compare); \
      const double ours = times[0][rounds / 2], theirs = times[1][rounds / 2];                    \
      if (rank == 0) printf("%d %s %d %.3f %.3f\n", size, #name, whole, ours, theirs);            \
      sizes[n] = whole;                                                                           \
      faster[n++] = ours < kFaster * theirs;                                                      \
    }                                                                                             \
    if (table) write_ranges(#name, sizes, faster, n);                                             \
    fflush(stdout);                                                                               \
  } while (0)

/* Those whose size not all ranks know have no row in a table. */
static void unsized(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  ROW(Alltoallv, 1, in, counts, places, MPI_INT, r, counts, places, MPI_INT, world);
  ROW(Gatherv, 1, in, block, MPI_BYTE, r, counts, places, MPI_INT, 0, world);
  ROW(Scatterv, 1, in, counts, places, MPI_INT, r, block, MPI_BYTE, 0, world);
}

int main(int argc, char** argv) {
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  barrier = (__typeof__(barrier))real("PMPI_Barrier");
  allreduce = (__typeof__(allreduce))real("PMPI_Allreduce");
  in = calloc(1, kBytes + 8 * kRanks);
  r = calloc(1, kBytes + 8 * kRanks);
  table = argc > 1 && rank == 0 ? fopen(argv[1], "a") : NULL;
  if (!in || !r || size > kRanks || (argc > 1 && rank == 0 && !table)) {
    fprintf(stderr, "mpi_beside: %s\n", size > kRanks ? "4096 ranks are the most" : table ? "no memory" : "the table cannot be written");
    MPI_Abort(world, 1);
  }
  ROW(Allreduce, 0, in, r, bytes / 4, MPI_FLOAT, MPI_SUM, world);
  ROW(Reduce, 0, in, r, bytes / 4, MPI_FLOAT, MPI_SUM, 0, world);
  ROW(Reduce_scatter_block, 1, in, r, block / 4, MPI_FLOAT, MPI_SUM, world);
  ROW(Reduce_scatter, 1, in, r, counts, MPI_FLOAT, MPI_SUM, world);
  ROW(Scan, 0, in, r, bytes / 4, MPI_FLOAT, MPI_SUM, world);
  ROW(Exscan, 0, in, r, bytes / 4, MPI_FLOAT, MPI_SUM, world);
  ROW(Bcast, 0, in, bytes, MPI_BYTE, 0, world);
  ROW(Allgather, 1, in, block, MPI_BYTE, r, block, MPI_BYTE, world);
  ROW(Allgatherv, 1, in, block, MPI_BYTE, r, counts, places, MPI_INT, world);
  ROW(Alltoall, 1, in, block, MPI_BYTE, r, block, MPI_BYTE, world);
  ROW(Gather, 1, in, block, MPI_BYTE, r, block, MPI_BYTE, 0, world);
  ROW(Scatter, 1, in, block, MPI_BYTE, r, block, MPI_BYTE, 0, world);
  ROW(Barrier, -1, world);
  if (table && fclose(table) != 0) MPI_Abort(world, 1);
  table = NULL;
  unsized();
  free(in);
  free(r);
  MPI_Finalize();
  return 0;
}
