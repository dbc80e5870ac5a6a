/* SPDX-License-Identifier: Apache-2.0
 * A call made twice, once as the program's and once by MPI itself, behind every preloaded library.
 * Both must have written the same. */
#ifndef BOTH_H
#define BOTH_H

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBytes = 4 << 20, kPattern = 0x5A };
static int rank, size, wrong = 0, checks = 0;
__attribute__((unused)) static char *in, *got, *want,
    *r; /* r: where the call that is made writes */

#ifdef OPEN_MPI
enum { kMpich = 0 };
static const char* const libraries[] = {"libmpi.so.40"};
#else
enum { kMpich = 1 }; /* 4.0.2 has faults of its own */
static const char* const libraries[] = {"libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1"};
#endif

__attribute__((unused)) static void* real(const char* name) {
  void* found = NULL;
  for (unsigned i = 0; !found && i < sizeof libraries / sizeof *libraries; ++i) {
    void* library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
    if (library) found = dlsym(library, name);
  }
  if (!found) {
    printf("there is no %s in the MPI library\n", name);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return found;
}

__attribute__((unused)) static void differs(const char* call, const char* what) {
  if (++wrong <= 10) printf("rank %d of %d: %s: %s differs from MPI's\n", rank, size, call, what);
}

/* The first `count` of the type; padding is nobody's. */
__attribute__((unused)) static int same(MPI_Datatype type, int count) {
#define SAME(T, each)                              \
  do {                                             \
    for (int i = 0; i < count * each; ++i)         \
      if (((T*)got)[i] != ((T*)want)[i]) return 0; \
    return 1;                                      \
  } while (0)
  if (type == MPI_LONG_DOUBLE) SAME(long double, 1);
  if (type == MPI_C_FLOAT_COMPLEX || type == MPI_COMPLEX) SAME(float, 2); /* -0 is 0 */
  if (type == MPI_C_DOUBLE_COMPLEX) SAME(double, 2);
  if (type == MPI_LONG_DOUBLE_INT) {
    struct pair {
      long double value;
      int index;
    }* a = (struct pair*)got, *b = (struct pair*)want;
    for (int i = 0; i < count; ++i)
      if (a[i].value != b[i].value || a[i].index != b[i].index) return 0;
    return 1;
  }
  int bytes, at = 0;
  static char one[kBytes], other[kBytes];
  MPI_Pack_size(count, type, MPI_COMM_WORLD, &bytes);
  MPI_Pack(got, count, type, one, bytes, &at, MPI_COMM_WORLD);
  at = 0;
  MPI_Pack(want, count, type, other, bytes, &at, MPI_COMM_WORLD);
  return memcmp(one, other, (size_t)at) == 0;
}

/* `before`: what fills r. */
#define MAKE_BOTH(name, before, ...)                                        \
  do {                                                                      \
    static __typeof__(&MPI_##name) real_one = NULL;                         \
    if (!real_one) real_one = (__typeof__(&MPI_##name))real("PMPI_" #name); \
    r = got;                                                                \
    before;                                                                 \
    MPI_##name(__VA_ARGS__);                                                \
    r = want;                                                               \
    before;                                                                 \
    real_one(__VA_ARGS__);                                                  \
    ++checks;                                                               \
  } while (0)

static int begin(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  in = malloc(kBytes);
  got = malloc(kBytes);
  want = malloc(kBytes);
  srand(17 + rank);
  return rank;
}

__attribute__((unused)) static int end(void) {
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf(all ? "%2$d of %1$d checks were wrong\n" : "%d checks were right\n", checks, all);
  free(in);
  free(got);
  free(want);
  MPI_Finalize();
  return wrong != 0;
}

#endif
