/* SPDX-License-Identifier: Apache-2.0
 * Enough of CUDA's driver for memory that the host cannot touch: whoever does faults, as on a GPU. What the program copies
 * there arrives when its default stream is waited for, as CUDA may have it, or at once where the memory is synchronous. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kBytes = 64 << 20, kDevice = 2, kType = 2, kSynchronous = 6, kOrdinal = 9, kInvalid = 1, kNotReady = 600 };
enum { kMostAllocations = 64, kLegacyStream = 1 };
static char *gpu, *behind; /* the same memory, as the host sees it and as the GPU does */
static size_t used;
static __thread int depth;
static struct { char *begin, *end; unsigned synchronous; } allocations[kMostAllocations];
static int allocated;
static struct Copy { struct Copy* next; char* to; size_t bytes; char data[]; } *first_late, **last_late = &first_late;
static int asked; /* since the latest of them */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static unsigned* synchronous(unsigned long long memory) {
  for (int i = 0; i < allocated; ++i) {
    if ((char*)memory >= allocations[i].begin && (char*)memory < allocations[i].end) return &allocations[i].synchronous;
  }
  return NULL;
}

/* With the mutex. */
static void arrive(void) {
  while (first_late) {
    struct Copy* copy = first_late;
    memcpy(copy->to, copy->data, copy->bytes);
    first_late = copy->next;
    free(copy);
  }
  last_late = &first_late;
}

int cuMemAlloc_v2(unsigned long long* memory, size_t bytes) {
  if (!gpu) {
    const int file = memfd_create("gpu", 0);
    if (ftruncate(file, kBytes) != 0) return kInvalid;
    gpu = mmap(NULL, kBytes, PROT_NONE, MAP_SHARED, file, 0);
    behind = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  *memory = (unsigned long long)(gpu + used);
  used += (bytes + 4095) / 4096 * 4096;
  if (used > kBytes || allocated == kMostAllocations) return kInvalid;
  allocations[allocated].begin = (char*)*memory;
  allocations[allocated++].end = gpu + used;
  return 0;
}

static char* at(unsigned long long memory) {
  char* p = (char*)memory;
  return gpu && p >= gpu && p < gpu + kBytes ? behind + (p - gpu) : NULL;
}

int cuPointerGetAttribute(void* value, int attribute, unsigned long long memory) {
  if (!at(memory) || !synchronous(memory)) return kInvalid;
  *(unsigned*)value = attribute == kType ? kDevice : attribute == kSynchronous ? *synchronous(memory) : 0;
  return attribute == kType || attribute == kOrdinal || attribute == kSynchronous ? 0 : kInvalid;
}
int cuPointerSetAttribute(const void* value, int attribute, unsigned long long memory) {
  if (attribute != kSynchronous || !synchronous(memory)) return kInvalid;
  if (synchronous(memory) == &allocations[1].synchronous) return kInvalid; /* as of memory that is mapped by parts */
  *synchronous(memory) = *(const unsigned*)value;
  return 0;
}
int cuStreamQuery(void* stream) {
  if (depth == 0 || (size_t)stream != kLegacyStream) return depth == 0;
  pthread_mutex_lock(&mutex);
  const int late = first_late && ++asked < 3;
  if (!late) arrive();
  pthread_mutex_unlock(&mutex);
  return late ? kNotReady : 0;
}

int cuInit(unsigned flags) { return flags != 0; }
int cuDevicePrimaryCtxRetain(void** context, int gpu_number) {
  *context = &gpu;
  return gpu_number != 0;
}
int cuCtxPushCurrent_v2(void* context) { return ++depth, context != &gpu; }
int cuCtxPopCurrent_v2(void** context) { return *context = &gpu, --depth < 0; }
int cuStreamSynchronize(void* stream) { return depth == 0 || stream != &used; }
static int from_gpu(void* to, unsigned long long from, size_t bytes) {
  if (depth == 0 || !at(from)) return kInvalid;
  memcpy(to, at(from), bytes);
  return 0;
}
static int to_gpu(unsigned long long to, const void* from, size_t bytes) {
  if (depth == 0 || !at(to)) return kInvalid;
  memcpy(at(to), from, bytes);
  return 0;
}
/* The program's own, in its default stream. */
int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
  pthread_mutex_lock(&mutex);
  arrive();
  pthread_mutex_unlock(&mutex);
  return from_gpu(to, from, bytes);
}
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t bytes) {
  if (depth == 0 || !at(to) || !synchronous(to)) return kInvalid;
  if (*synchronous(to)) return to_gpu(to, from, bytes);
  struct Copy* copy = malloc(sizeof *copy + bytes);
  *copy = (struct Copy){NULL, at(to), bytes};
  memcpy(copy->data, from, bytes);
  pthread_mutex_lock(&mutex);
  *last_late = copy;
  last_late = &copy->next;
  asked = 0;
  pthread_mutex_unlock(&mutex);
  return 0;
}
/* A stream of the library's waits for no other. It takes a while to find: other threads look meanwhile. */
static int make_stream(void** stream, unsigned flags) { return *stream = &used, depth == 0 || flags != 1; }
static void* find_make_stream(void) {
  usleep(20000);
  return (void*)make_stream;
}
int cuStreamCreate(void** stream, unsigned flags) __attribute__((ifunc("find_make_stream")));
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void* stream) {
  return stream != &used || from_gpu(to, from, bytes);
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void* stream) {
  return stream != &used || to_gpu(to, from, bytes);
}
