/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes that share nothing but a file: no MPI, no launcher.
 *   unique_id 0 /tmp/id & unique_id 1 /tmp/id
 * Rank 0 makes the id and writes the file; any other way to hand over its bytes does as well. */
#include <gdrx/gdrx.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void check(gdrxResult_t result) {
  if (result == gdrxSuccess) return;
  fprintf(stderr, "unique_id: %s\n", gdrxGetLastError(NULL));
  exit(1);
}

/* Under another name first, so that the reader finds a whole file or none. */
static void give(const char* path, const gdrxUniqueId* id) {
  char draft[4096];
  snprintf(draft, sizeof draft, "%s.draft", path);
  FILE* file = fopen(draft, "wb");
  if (!file || fwrite(id, sizeof *id, 1, file) != 1 || fclose(file) != 0 ||
      rename(draft, path) != 0) {
    perror(path);
    exit(1);
  }
}

static void take(const char* path, gdrxUniqueId* id) {
  const struct timespec pause = {0, 10000000};
  for (int attempt = 0; attempt < 1000; ++attempt, nanosleep(&pause, NULL)) {
    FILE* file = fopen(path, "rb");
    if (!file) continue;
    const size_t whole = fread(id, sizeof *id, 1, file);
    fclose(file);
    if (whole == 1) return;
  }
  fprintf(stderr, "unique_id: rank 0 wrote no %s within 10 s\n", path);
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: unique_id RANK FILE, with ranks 0 and 1\n");
    return 2;
  }
  const int rank = atoi(argv[1]);
  gdrxUniqueId id;
  if (rank == 0) {
    check(gdrxGetUniqueId(&id));
    give(argv[2], &id);
  } else {
    take(argv[2], &id);
  }
  gdrxComm_t comm = NULL;
  check(gdrxCommInitRank(&comm, 2, id, rank, NULL));
  const float mine = (float)(rank + 1);
  float sum = 0;
  check(gdrxAllReduce(&mine, &sum, 1, gdrxFloat32, gdrxSum, comm, NULL, NULL));
  printf("rank %d: %g\n", rank, (double)sum);
  check(gdrxCommDestroy(comm));
  return 0;
}
