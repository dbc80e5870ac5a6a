/* SPDX-License-Identifier: Apache-2.0
 * Memory of a GPU by the driver that a program is given: CUDA's (libcuda.so.1), or driver.c's,
 * which has no GPU. It is loaded after MPI_Init. */
#ifndef GPU_MEMORY_H
#define GPU_MEMORY_H

static int (*alloc)(unsigned long long*, size_t);
static int (*read_gpu)(void*, unsigned long long, size_t);
static int (*write_gpu)(unsigned long long, const void*, size_t);
static int (*enter_gpu)(void*); /* what a thread does first, with gpu_context */
static void* gpu_context;
static unsigned long long gpu_in, gpu_out;

static void load(const char* path, size_t bytes) {
  void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!library) printf("%s\n", dlerror()), MPI_Abort(MPI_COMM_WORLD, 1);
  alloc = (__typeof__(alloc))dlsym(library, "cuMemAlloc_v2");
  read_gpu = (__typeof__(read_gpu))dlsym(library, "cuMemcpyDtoH_v2");
  write_gpu = (__typeof__(write_gpu))dlsym(library, "cuMemcpyHtoD_v2");
  enter_gpu = (__typeof__(enter_gpu))dlsym(library, "cuCtxPushCurrent_v2");
  int (*init)(unsigned) = (__typeof__(init))dlsym(library, "cuInit");
  int (*retain)(void**, int) = (__typeof__(retain))dlsym(library, "cuDevicePrimaryCtxRetain");
  if (init(0) || retain(&gpu_context, 0) || enter_gpu(gpu_context) || alloc(&gpu_in, bytes) ||
      alloc(&gpu_out, bytes)) {
    printf("no memory on the GPU of %s\n", path), MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

#endif
