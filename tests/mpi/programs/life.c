/* SPDX-License-Identifier: Apache-2.0
 * Communicators that come and go: duplicates, halves, groups, handles that are used again, some never freed, one freed
 * before another rank is as far, attributes of the program's own that are copied once. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static int copies = 0;
static int on_copy(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  ++copies;
  *(void**)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

static int sum_is(MPI_Comm comm, const char* where) {
  int rank, size, one = 1, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  if (sum == size) return 0;
  printf("%s: the sum is %d of %d\n", where, sum, size);
  return 1;
}

int main(int argc, char** argv) {
  int rank, size, wrong = 0, key, value = 7;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_create_keyval(on_copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value);
  wrong += sum_is(MPI_COMM_WORLD, "world, before it is duplicated");
  for (int round = 0; round < 30; ++round) {
    MPI_Comm copy, half, reversed;
    const int before = copies;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (copies != before + 1) ++wrong, printf("an attribute was copied %d times\n", copies - before);
    wrong += sum_is(copy, "dup");
    if (copies != before + 1) ++wrong, printf("a collective copied an attribute\n");
    MPI_Comm_split(copy, rank % 2, 0, &half);
    wrong += sum_is(half, "split");
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    int first = rank;
    MPI_Bcast(&first, 1, MPI_INT, 0, reversed);
    if (first != size - 1) ++wrong, printf("the first of the reversed is %d\n", first);
    MPI_Comm_free(&copy);
    wrong += sum_is(half, "a half of what was freed");
    MPI_Comm_free(&half);
    if (round % 10 != 0) MPI_Comm_free(&reversed);
  }
  if (rank < size - 1) { /* collective over some alone */
    MPI_Group world, some;
    MPI_Comm few;
    const int last = size - 1;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_excl(world, 1, &last, &some);
    MPI_Comm_create_group(MPI_COMM_WORLD, some, 3, &few);
    wrong += sum_is(few, "create_group");
    if (rank == 0) usleep(300000);
    MPI_Comm_free(&few);
    MPI_Group_free(&some);
    MPI_Group_free(&world);
  }
  wrong += sum_is(MPI_COMM_WORLD, "world");
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf(all ? "%d were wrong\n" : "all are right\n", all);
  MPI_Finalize();
  return wrong != 0;
}
