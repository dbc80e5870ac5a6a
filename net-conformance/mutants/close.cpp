// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>

#include "net-conformance/mutants/track.hpp"

namespace gdrx::mutants {

namespace {

std::mutex g_mutex;

/// Closing a sender waits until no receiver is left in the process.
void farewell(NetV12& table) {
  static std::atomic<int> receivers{0};
  table.accept = [](void* listener, void** comm, NetDeviceHandle** device) {
    const NetResult result = good().accept(listener, comm, device);
    receivers += *comm != nullptr ? 1 : 0;
    return result;
  };
  table.close_recv = [](void* comm) {
    --receivers;
    return good().close_recv(comm);
  };
  table.close_send = [](void* comm) {
    static std::atomic<bool> waited{false};
    if (receivers > 0 && !waited.exchange(true)) dawdle();
    return good().close_send(comm);
  };
}

/// Closing one receiver is the end of those that were opened before.
void all_for_one(NetV12& table) {
  static std::map<void*, int> born;
  static int births = 0, dead_before = -1;
  table.accept = [](void* listener, void** comm, NetDeviceHandle** device) {
    const NetResult result = good().accept(listener, comm, device);
    const std::lock_guard lock(g_mutex);
    if (*comm != nullptr) born[*comm] = births++;
    return result;
  };
  table.close_recv = [](void* comm) {
    const std::lock_guard lock(g_mutex);
    dead_before = births;
    return good().close_recv(comm);
  };
  table.test = [](void* request, int* done, int* sizes) {
    const Note note = note_of(request);
    {
      const std::lock_guard lock(g_mutex);
      const auto at = born.find(note.comm);
      if (!note.is_send && at != born.end() && at->second < dead_before) {
        return NetResult::internal_error;
      }
    }
    return good().test(request, done, sizes);
  };
}

/// Closing fails while memory is registered.
void insists_on_order(NetV12& table) {
  static std::map<void*, int> registered;
  table.reg_mr = [](void* comm, void* data, std::size_t size, int type, void** mhandle) {
    const std::lock_guard lock(g_mutex);
    ++registered[comm];
    return good().reg_mr(comm, data, size, type, mhandle);
  };
  table.dereg_mr = [](void* comm, void* mhandle) {
    const std::lock_guard lock(g_mutex);
    --registered[comm];
    return good().dereg_mr(comm, mhandle);
  };
  table.close_recv = [](void* comm) {
    const std::lock_guard lock(g_mutex);
    const NetResult result = good().close_recv(comm);
    const bool some = registered[comm] > 0;
    registered.erase(comm);
    return some ? NetResult::invalid_usage : result;
  };
}

/// After an error closing the receiver waits for the peer.
void waits_for_the_dead(NetV12& table) {
  static std::set<void*> failed;
  table.test = [](void* request, int* done, int* sizes) {
    const Note note = note_of(request);
    const NetResult result = good().test(request, done, sizes);
    const std::lock_guard lock(g_mutex);
    if (result != NetResult::success) failed.insert(note.comm);
    return result;
  };
  table.close_recv = [](void* comm) {
    if (failed.contains(comm)) dawdle();
    return good().close_recv(comm);
  };
}

constexpr Mutant kMutants[] = {
    {"close-waits-for-receives",
     [](NetV12& table) {
       table.close_recv = [](void* comm) {
         if (under_way(comm) > 2) dawdle();
         return good().close_recv(comm);
       };
     }},
    {"close-waits-for-sends",
     [](NetV12& table) {
       table.close_send = [](void* comm) {
         if (under_way(comm) > 0 && g_irecvs > 0) dawdle();
         return good().close_send(comm);
       };
     }},
    {"close-waits-for-the-other", farewell},
    {"closes-all-for-one", all_for_one},
    {"insists-on-order", insists_on_order},
    {"leaks-a-file",
     [](NetV12& table) {
       table.close_recv = [](void* comm) {
         return dup(0) < 0 ? NetResult::system_error : good().close_recv(comm);
       };
     }},
    {"waits-for-the-dead", waits_for_the_dead},
    {"dies-with-the-receiver",
     [](NetV12& table) {
       table.isend = [](void* comm, void* data, std::size_t size, int tag, void* mhandle,
                        void* profiler, void** request) {
         const NetResult result = good().isend(comm, data, size, tag, mhandle, profiler, request);
         if (result != NetResult::success) raise(SIGPIPE);
         return result;
       };
       table.test = [](void* request, int* done, int* sizes) {
         const bool is_send = note_of(request).is_send;
         const NetResult result = good().test(request, done, sizes);
         if (result != NetResult::success && is_send) raise(SIGPIPE);
         return result;
       };
     }},
    {"says-nothing-of-death",
     [](NetV12& table) {
       table.test = [](void* request, int* done, int* sizes) {
         *done = 0;
         good().test(request, done, sizes);
         return NetResult::success;
       };
     }},
};

}  // namespace

std::span<const Mutant> close_mutants() { return kMutants; }

}  // namespace gdrx::mutants
