// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

#include "net-conformance/mutants/track.hpp"

namespace gdrx::mutants {

namespace {

std::mutex g_mutex;

/// What was refused once is sent in place of the next message.
void keeps_what_it_refused(NetV12& table) {
  static std::map<void*, std::pair<void*, int>> refused;  // by communicator: data and tag
  table.isend = [](void* comm, void* data, std::size_t size, int tag, void* mhandle, void* profiler,
                   void** request) {
    const std::lock_guard lock(g_mutex);
    const auto at = refused.find(comm);
    void* const kept =
        at != refused.end() && at->second.second == tag && tag == 0 ? at->second.first : data;
    const NetResult result = good().isend(comm, kept, size, tag, mhandle, profiler, request);
    if (*request == nullptr) {
      refused[comm] = {kept, tag};
    } else {
      refused.erase(comm);
    }
    return result;
  };
}

template <int kMost, bool kGroupsAlone>
NetResult few(void* comm, int n, void** data, std::size_t* sizes, int* tags, void** mhandles,
              void** profilers, void** request) {
  if ((!kGroupsAlone || n > 1) && under_way(comm, kGroupsAlone) >= kMost) {
    *request = nullptr;
    return kGroupsAlone ? NetResult::internal_error : NetResult::success;
  }
  return good().irecv(comm, n, data, sizes, tags, mhandles, profilers, request);
}

/// Two threads in the data path at once are one too many.
std::atomic<int> g_inside{0};
NetResult alone(void* request, int* done, int* sizes) {
  const bool crowded = ++g_inside > 1;
  sched_yield();  // so that it is seen on a machine of few cores
  const NetResult result = good().test(request, done, sizes);
  --g_inside;
  return crowded ? NetResult::internal_error : result;
}

constexpr Mutant kMutants[] = {
    {"keeps-what-it-refused", keeps_what_it_refused},
    {"leaves-done-alone",
     [](NetV12& table) {
       table.test = [](void* request, int* done, int* sizes) {
         int now = 0;
         const NetResult result = good().test(request, &now, sizes);
         if (now != 0) *done = now;
         return result;
       };
     }},
    {"test-waits",
     [](NetV12& table) {
       table.test = [](void* request, int* done, int* sizes) {
         static std::atomic<bool> waited{false};
         if (!note_of(request).is_send && g_isends == 0 && !waited.exchange(true)) dawdle();
         return good().test(request, done, sizes);
       };
     }},
    {"isend-waits",
     [](NetV12& table) {
       table.isend = [](void* comm, void* data, std::size_t size, int tag, void* mhandle,
                        void* profiler, void** request) {
         static std::atomic<bool> waited{false};
         if (g_irecvs == 0 && !waited.exchange(true)) dawdle();
         return good().isend(comm, data, size, tag, mhandle, profiler, request);
       };
     }},
    {"two-sizes-for-a-send",
     [](NetV12& table) {
       table.test = [](void* request, int* done, int* sizes) {
         const bool is_send = note_of(request).is_send;
         const NetResult result = good().test(request, done, sizes);
         if (is_send && *done != 0 && sizes != nullptr) sizes[1] = 0;
         return result;
       };
     }},
    {"wants-sizes",
     [](NetV12& table) {
       table.test = [](void* request, int* done, int* sizes) {
         *static_cast<volatile int*>(sizes) = 0;
         return good().test(request, done, sizes);
       };
     }},
    {"few-groups", [](NetV12& table) { table.irecv = few<16, true>; }},
    {"few-receives", [](NetV12& table) { table.irecv = few<16, false>; }},
    {"leaves-the-sentinel",
     [](NetV12& table) {
       table.irecv = [](void* comm, int n, void** data, std::size_t* sizes, int* tags,
                        void** mhandles, void** profilers, void** request) {
         void* const before = *request;
         const NetResult result =
             good().irecv(comm, n, data, sizes, tags, mhandles, profilers, request);
         if (before != nullptr) *request = before;
         return result;
       };
     }},
    {"consumes-nothing",
     [](NetV12& table) {
       table.irecv_consumed = [](void*, int, void*) { return NetResult::invalid_usage; };
     }},
    {"one-thread-at-a-time", [](NetV12& table) { table.test = alone; }},
};

}  // namespace

std::span<const Mutant> request_mutants() { return kMutants; }

}  // namespace gdrx::mutants
