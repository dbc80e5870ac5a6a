/* SPDX-License-Identifier: Apache-2.0
 * Behind gdrx, as an MPI that knows GPUs: it says so, and whose memory a broadcast has got. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int MPIX_Query_cuda_support(void) { return 1; }

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  (void)count, (void)type, (void)root, (void)comm;
  unsigned kind = 0;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  int (*ask)(void*, int, unsigned long long) = (__typeof__(ask))dlsym(driver, "cuPointerGetAttribute");
  const int asked = ask(&kind, 2, (unsigned long long)buffer);
  printf("MPI has got %s\n", asked == 0 && kind == 2 ? "memory on a GPU" : "a copy");
  return MPI_SUCCESS;
}
