/* SPDX-License-Identifier: Apache-2.0
 * The collectives whose counts have 64 bits, beside MPI's own result. `over`: one of more elements than an int counts. */
#include "both.h"

#define BEFORE memset(r, kPattern, 1 << 16)
#define WORLD MPI_COMM_WORLD

static void check(const char* call) {
  if (memcmp(got, want, 1 << 16) != 0) differs(call, "the result");
}

static void blocking(MPI_Count n) {
  MPI_Count counts[64];
  MPI_Aint places[64];
  for (int i = 0; i < size; ++i) {
    counts[i] = n + i;
    places[i] = i * (n + size);
  }
  const int root = (int)(n % size);
  MAKE_BOTH(Allreduce_c, BEFORE, in, r, n, MPI_INT, MPI_SUM, WORLD);
  check("Allreduce_c");
  MAKE_BOTH(Reduce_c, BEFORE, in, r, n, MPI_INT, MPI_MAX, root, WORLD);
  check("Reduce_c");
  MAKE_BOTH(Reduce_scatter_block_c, BEFORE, in, r, n, MPI_INT, MPI_SUM, WORLD);
  check("Reduce_scatter_block_c");
  MAKE_BOTH(Reduce_scatter_c, BEFORE, in, r, counts, MPI_INT, MPI_SUM, WORLD);
  check("Reduce_scatter_c");
  MAKE_BOTH(Scan_c, BEFORE, in, r, n, MPI_INT, MPI_SUM, WORLD);
  check("Scan_c");
  MAKE_BOTH(Exscan_c, BEFORE, in, r, n, MPI_INT, MPI_SUM, WORLD);
  if (rank > 0) check("Exscan_c");
  MAKE_BOTH(Bcast_c, memset(r, rank, 1 << 16), r, n, MPI_INT, root, WORLD);
  check("Bcast_c");
  MAKE_BOTH(Allgather_c, BEFORE, in, n, MPI_INT, r, n, MPI_INT, WORLD);
  check("Allgather_c");
  MAKE_BOTH(Allgatherv_c, BEFORE, in, counts[rank], MPI_INT, r, counts, places, MPI_INT, WORLD);
  check("Allgatherv_c");
  MAKE_BOTH(Alltoall_c, BEFORE, in, n, MPI_INT, r, n, MPI_INT, WORLD);
  check("Alltoall_c");
  MAKE_BOTH(Gather_c, BEFORE, in, n, MPI_INT, r, n, MPI_INT, root, WORLD);
  check("Gather_c");
  MAKE_BOTH(Gatherv_c, BEFORE, in, counts[rank], MPI_INT, r, counts, places, MPI_INT, root, WORLD);
  check("Gatherv_c");
  MAKE_BOTH(Scatter_c, BEFORE, in, n, MPI_INT, r, n, MPI_INT, root, WORLD);
  check("Scatter_c");
  MAKE_BOTH(Scatterv_c, BEFORE, in, counts, places, MPI_INT, r, counts[rank], MPI_INT, root, WORLD);
  check("Scatterv_c");
  for (int i = 0; i < size; ++i) counts[i] = n + i + rank; /* the same both ways */
  for (int i = 0; i < size; ++i) places[i] = i * (n + 2 * size);
  MAKE_BOTH(Alltoallv_c, BEFORE, in, counts, places, MPI_INT, r, counts, places, MPI_INT, WORLD);
  check("Alltoallv_c");
}

static void nonblocking(MPI_Count n) {
  MPI_Request requests[2];
  MPI_Count counts[64];
  MPI_Aint places[64];
  for (int i = 0; i < size; ++i) counts[i] = n + i + rank;
  for (int i = 0; i < size; ++i) places[i] = i * (n + 2 * size);
  char* sums = got + (1 << 16);
  r = got;
  BEFORE;
  MPI_Ialltoallv_c(in, counts, places, MPI_INT, r, counts, places, MPI_INT, WORLD, &requests[0]);
  MPI_Iallreduce_c(in, sums, n, MPI_INT, MPI_SUM, WORLD, &requests[1]);
  MPI_Status statuses[2];
  MPI_Waitall(2, requests, statuses);
  r = want;
  BEFORE;
  ((__typeof__(&MPI_Alltoallv_c))real("PMPI_Alltoallv_c"))(in, counts, places, MPI_INT, r, counts, places, MPI_INT, WORLD);
  check("Ialltoallv_c");
  ((__typeof__(&MPI_Allreduce_c))real("PMPI_Allreduce_c"))(in, r, n, MPI_INT, MPI_SUM, WORLD);
  if (memcmp(sums, want, (size_t)n * sizeof(int)) != 0) differs("Iallreduce_c", "the result");
  checks += 2;
}

/* More bytes than an int counts, and more elements. */
static void over(void) {
  const MPI_Count n = ((MPI_Count)1 << 31) + 5;
  char* bytes = malloc((size_t)n);
  if (!bytes) MPI_Abort(WORLD, 1);
  memset(bytes, rank == 0 ? 7 : 0, (size_t)n);
  MPI_Bcast_c(bytes, n, MPI_BYTE, 0, WORLD);
  for (MPI_Count i = 0; i < n; i += i + 4096 < n ? 4095 : 1)
    if (bytes[i] != 7) {
      differs("Bcast_c", "a byte of over 2 GiB");
      break;
    }
  ++checks;
  free(bytes);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  for (int i = 0; i < 1 << 14; ++i) ((int*)in)[i] = rank * 1000 + i % 97;
  if (argc > 1) {
    over();
    return end();
  }
  const MPI_Count counts[] = {1, 11, 111, 1001};
  for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
    blocking(counts[i]);
    nonblocking(counts[i]);
  }
  return end();
}
