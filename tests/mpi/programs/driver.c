/* SPDX-License-Identifier: Apache-2.0
 * Enough of CUDA's driver for memory that the host cannot touch: whoever does faults, as on a GPU. What the program copies
 * there arrives when its default stream is waited for, as CUDA may have it, or at once where the memory is synchronous.
 * Large copies in a stream are refused where the host memory is not pinned: no GPU moves those itself. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kBytes = 64 << 20, kDevice = 2, kType = 2, kSynchronous = 6, kBufferId = 7, kOrdinal = 9, kInvalid = 1, kNotReady = 600 };
enum { kMostAllocations = 64, kLegacyStream = 1 };
static char *gpu, *behind; /* the same memory, as the host sees it and as the GPU does */
static size_t used;
static __thread int depth, mode;
static struct { char *begin, *end; unsigned synchronous; } allocations[kMostAllocations];
static int allocated;
static struct Copy { struct Copy* next; char* to; size_t bytes; char data[]; } *first_late, **last_late = &first_late;
static int asked; /* since the latest of them */
enum { kPortable = 1, kRelaxed = 2, kCaptured = 900, kImplicitlyCaptured = 906, kMostPinned = 256, kOutOfMemory = 2, kEnded = 4 };
static struct { char* at; size_t bytes; } pinned[kMostPinned];
/* What a test looks at and sets. `may_pin`: no more bytes than that are pinned; `pageable`:
 * copies of as many need not be. */
size_t fake_pinned, fake_most_pinned, fake_pins, fake_copies, fake_may_pin = (size_t)1 << 40, fake_pageable = 64 << 10;
static int refused_to_pin; /* then there is no other way */
int fake_ended;    /* as when the process ends */
int fake_captures; /* another thread captures a stream: who does not mind it is refused what waits, and spoils the capture */
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
  if (attribute == kBufferId) return *(unsigned long long*)value = (size_t)synchronous(memory), 0;
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
  if (fake_captures) return fake_captures = 2, kImplicitlyCaptured;
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
int cuCtxPushCurrent_v2(void* context) { return fake_ended ? kEnded : (++depth, context != &gpu); }
int cuCtxPopCurrent_v2(void** context) { return *context = &gpu, --depth < 0; }

int cuThreadExchangeStreamCaptureMode(int* other) {
  const int was = mode;
  mode = *other;
  *other = was;
  return 0;
}
/* That stream waits for the default one: who asks that spoils the capture. What was copied has arrived by then. */
int cuStreamIsCapturing(void* stream, int* captured) {
  *captured = 0;
  if (!fake_captures || (size_t)stream != kLegacyStream) return 0;
  pthread_mutex_lock(&mutex);
  arrive();
  pthread_mutex_unlock(&mutex);
  return kImplicitlyCaptured;
}
static int is_captured(void) {
  if (fake_captures && mode != kRelaxed) fake_captures = 2;
  return fake_captures && mode != kRelaxed;
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  if (fake_ended || is_captured()) return fake_ended ? kEnded : kCaptured;
  if (depth == 0 || flags != kPortable) return kInvalid;
  pthread_mutex_lock(&mutex);
  int i = 0;
  while (i < kMostPinned && pinned[i].at) ++i;
  const int full = i == kMostPinned || fake_pinned + bytes > fake_may_pin;
  refused_to_pin |= full;
  if (!full) {
    *memory = pinned[i].at = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    pinned[i].bytes = bytes;
    ++fake_pins;
    fake_pinned += bytes;
    if (fake_pinned > fake_most_pinned) fake_most_pinned = fake_pinned;
  }
  pthread_mutex_unlock(&mutex);
  return full ? kOutOfMemory : 0;
}
int cuMemFreeHost(void* memory) {
  if (fake_ended) return kEnded;
  int code = kInvalid;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < kMostPinned && depth > 0; ++i) {
    if (!memory || pinned[i].at != memory) continue;
    fake_pinned -= pinned[i].bytes;
    pinned[i].at = NULL;
    free(memory);
    code = 0;
  }
  pthread_mutex_unlock(&mutex);
  return code;
}
static int may_copy(const char* host, size_t bytes) {
  int is = bytes <= fake_pageable || refused_to_pin;
  pthread_mutex_lock(&mutex);
  ++fake_copies;
  for (int i = 0; i < kMostPinned; ++i) {
    is |= pinned[i].at && host >= pinned[i].at && host + bytes <= pinned[i].at + pinned[i].bytes;
  }
  pthread_mutex_unlock(&mutex);
  return is;
}

int cuStreamSynchronize(void* stream) { return is_captured() ? kCaptured : depth == 0 || stream != &used; }
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
  return stream != &used || !may_copy(to, bytes) || from_gpu(to, from, bytes);
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void* stream) {
  return stream != &used || !may_copy(from, bytes) || to_gpu(to, from, bytes);
}
struct Rows {
  size_t from_x, from_y;
  int from_kind;
  const char* from_host;
  unsigned long long from_gpu;
  void* from_array;
  size_t from_pitch, to_x, to_y;
  int to_kind;
  char* to_host;
  unsigned long long to_gpu;
  void* to_array;
  size_t to_pitch, width, rows;
};
int cuMemcpy2DAsync_v2(const struct Rows* copy, void* stream) {
  enum { kHost = 1 };
  const int reads = copy->from_kind == kDevice && copy->to_kind == kHost;
  if (stream != &used || (!reads && (copy->from_kind != kHost || copy->to_kind != kDevice))) return kInvalid;
  if (copy->width > copy->from_pitch || copy->width > copy->to_pitch) return kInvalid;
  if (!may_copy(reads ? copy->to_host : copy->from_host, (copy->rows - 1) * copy->to_pitch + copy->width)) return kInvalid;
  for (size_t i = 0; i < copy->rows; ++i) {
    const size_t from = i * copy->from_pitch, to = i * copy->to_pitch;
    const int code = reads ? from_gpu(copy->to_host + to, copy->from_gpu + from, copy->width)
                           : to_gpu(copy->to_gpu + to, copy->from_host + from, copy->width);
    if (code) return code;
  }
  return 0;
}
