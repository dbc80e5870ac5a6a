/* SPDX-License-Identifier: Apache-2.0
 * Enough of CUDA's driver for memory that the host cannot touch: whoever does faults, as on a GPU. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kBytes = 64 << 20, kDevice = 2, kType = 2, kOrdinal = 9, kInvalid = 1 };
static char *gpu, *behind; /* the same memory, as the host sees it and as the GPU does */
static size_t used;
static __thread int depth;

int cuMemAlloc_v2(unsigned long long* memory, size_t bytes) {
  if (!gpu) {
    const int file = memfd_create("gpu", 0);
    if (ftruncate(file, kBytes) != 0) return kInvalid;
    gpu = mmap(NULL, kBytes, PROT_NONE, MAP_SHARED, file, 0);
    behind = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  *memory = (unsigned long long)(gpu + used);
  used += (bytes + 4095) / 4096 * 4096;
  return used > kBytes;
}

static char* at(unsigned long long memory) {
  char* p = (char*)memory;
  return gpu && p >= gpu && p < gpu + kBytes ? behind + (p - gpu) : NULL;
}

int cuPointerGetAttribute(void* value, int attribute, unsigned long long memory) {
  if (!at(memory)) return kInvalid;
  *(unsigned*)value = attribute == kType ? kDevice : 0;
  return attribute == kType || attribute == kOrdinal ? 0 : kInvalid;
}

int cuInit(unsigned flags) { return flags != 0; }
int cuDevicePrimaryCtxRetain(void** context, int gpu_number) {
  *context = &gpu;
  return gpu_number != 0;
}
int cuCtxPushCurrent_v2(void* context) { return ++depth, context != &gpu; }
int cuCtxPopCurrent_v2(void** context) { return *context = &gpu, --depth < 0; }
int cuStreamSynchronize(void* stream) { return depth == 0 || stream != &used; }
int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
  if (depth == 0 || !at(from)) return kInvalid;
  memcpy(to, at(from), bytes);
  return 0;
}
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t bytes) {
  if (depth == 0 || !at(to)) return kInvalid;
  memcpy(at(to), from, bytes);
  return 0;
}
/* A stream of the library's waits for no other. */
int cuStreamCreate(void** stream, unsigned flags) { return *stream = &used, depth == 0 || flags != 1; }
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void* stream) {
  return stream != &used || cuMemcpyDtoH_v2(to, from, bytes);
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void* stream) {
  return stream != &used || cuMemcpyHtoD_v2(to, from, bytes);
}
