// SPDX-License-Identifier: Apache-2.0
// The program's functions are found before a library's.
#include "tests/nccl/door.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "gdrx/gdrx_look.h"

namespace gdrx::nccl::door {
namespace {

using namespace std::chrono_literals;
std::atomic<bool> closed{false};
std::atomic<int> guests{0}, ends{0};
thread_local int threads_left = -1;

template <class Condition>
void await(const char* what, Condition&& condition) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << what;
      return;
    }
    std::this_thread::sleep_for(1ms);
  }
}

/// `name` of libgdrx.so, behind the door.
template <class Function>
Function* behind(Function*, const char* name) {
  if (closed) {
    ++guests;
    await("the door was never opened", [] { return !closed; });
    --guests;
  }
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void close() { closed = true; }
void leave_open() { closed = false; }
void await_a_guest() {
  await("nobody came", [] { return guests > 0; });
}
int destroyed() { return ends; }
void allow_threads(int most) { threads_left = most; }
bool may_start() { return threads_left < 0 || threads_left-- > 0; }

}  // namespace gdrx::nccl::door

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*body)(void*), void* argument) {
  if (!gdrx::nccl::door::may_start()) return EAGAIN;
  static const auto create =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, body, argument);
}

using gdrx::nccl::door::behind;

gdrxResult_t gdrxCommDestroy(gdrxComm_t comm) {
  ++gdrx::nccl::door::ends;
  return reinterpret_cast<decltype(&gdrxCommDestroy)>(dlsym(RTLD_NEXT, "gdrxCommDestroy"))(comm);
}
gdrxResult_t gdrxCommCount(gdrxComm_t comm, int* count) {
  return behind(&gdrxCommCount, "gdrxCommCount")(comm, count);
}
gdrxResult_t gdrxCommUserRank(gdrxComm_t comm, int* rank) {
  return behind(&gdrxCommUserRank, "gdrxCommUserRank")(comm, rank);
}
gdrxResult_t gdrxCommGetAsyncError(gdrxComm_t comm, gdrxResult_t* error) {
  return behind(&gdrxCommGetAsyncError, "gdrxCommGetAsyncError")(comm, error);
}
gdrxResult_t gdrxCommGetMemory(gdrxComm_t comm, gdrxMemoryInfo_t* info) {
  return behind(&gdrxCommGetMemory, "gdrxCommGetMemory")(comm, info);
}
gdrxResult_t gdrxRedOpCreatePreMulSum(gdrxRedOp_t* op, const void* scalar, gdrxDataType_t type,
                                      gdrxComm_t comm) {
  return behind(&gdrxRedOpCreatePreMulSum, "gdrxRedOpCreatePreMulSum")(op, scalar, type, comm);
}
gdrxResult_t gdrxAllReduce(const void* send, void* recv, size_t count, gdrxDataType_t type,
                           gdrxRedOp_t op, gdrxComm_t comm, gdrxStream_t stream,
                           gdrxRequest_t* request) {
  return behind(&gdrxAllReduce, "gdrxAllReduce")(send, recv, count, type, op, comm, stream,
                                                 request);
}
