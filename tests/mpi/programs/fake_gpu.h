/* SPDX-License-Identifier: Apache-2.0
 * Memory of a GPU that is none: what driver.c gives, loaded after MPI_Init. */
#ifndef FAKE_GPU_H
#define FAKE_GPU_H

static int (*alloc)(unsigned long long*, size_t);
static int (*read_gpu)(void*, unsigned long long, size_t);
static int (*write_gpu)(unsigned long long, const void*, size_t);
static unsigned long long gpu_in, gpu_out;

static void load(const char* path, size_t bytes) {
  void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!library) printf("%s\n", dlerror()), MPI_Abort(MPI_COMM_WORLD, 1);
  alloc = (__typeof__(alloc))dlsym(library, "cuMemAlloc_v2");
  read_gpu = (__typeof__(read_gpu))dlsym(library, "cuMemcpyDtoH_v2");
  write_gpu = (__typeof__(write_gpu))dlsym(library, "cuMemcpyHtoD_v2");
  ((int (*)(void*))dlsym(library, "cuCtxPushCurrent_v2"))(NULL);
  if (alloc(&gpu_in, bytes) || alloc(&gpu_out, bytes)) MPI_Abort(MPI_COMM_WORLD, 1);
}

#endif
