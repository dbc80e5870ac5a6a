// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "net-conformance/mutants/track.hpp"

namespace gdrx::mutants {

namespace {

std::mutex g_mutex;

/// Remembers where the listener's handle lies, and wants it to be there still at accept.
void handle_stays(NetV12& table) {
  static std::map<void*, std::pair<void*, std::uint64_t>> handles;
  table.listen = [](void* context, int device, void* handle, void** comm) {
    const NetResult result = good().listen(context, device, handle, comm);
    const std::lock_guard lock(g_mutex);
    std::uint64_t first = 0;
    std::memcpy(&first, handle, sizeof first);
    handles[*comm] = {handle, first};
    return result;
  };
  table.accept = [](void* listener, void** comm, NetDeviceHandle** device) {
    {
      const std::lock_guard lock(g_mutex);
      const auto [handle, expected] = handles[listener];
      if (std::memcmp(handle, &expected, sizeof expected) != 0) {
        return NetResult::internal_error;
      }
    }
    return good().accept(listener, comm, device);
  };
}

/// A handle that means something in this process alone.
void handle_is_local(NetV12& table) {
  static std::map<std::uint64_t, std::array<std::byte, nccl::kHandleMaxSize>> handles;
  static std::uint64_t next = 0;
  table.listen = [](void* context, int device, void* handle, void** comm) {
    const std::lock_guard lock(g_mutex);
    const std::uint64_t key = ++next;
    const NetResult result = good().listen(context, device, handles[key].data(), comm);
    std::memset(handle, 0, nccl::kHandleMaxSize);
    std::memcpy(handle, &key, sizeof key);
    return result;
  };
  table.connect = [](void* context, int device, void* handle, void** comm, NetDeviceHandle** dev) {
    const std::lock_guard lock(g_mutex);
    std::uint64_t key = 0;
    std::memcpy(&key, handle, sizeof key);
    const auto at = handles.find(key);
    return at == handles.end() ? NetResult::internal_error
                               : good().connect(context, device, at->second.data(), comm, dev);
  };
}

/// What was accepted dies with the listener.
void listener_owns(NetV12& table) {
  static std::map<void*, void*> owners;
  static std::set<void*> dead;
  table.accept = [](void* listener, void** comm, NetDeviceHandle** device) {
    const NetResult result = good().accept(listener, comm, device);
    const std::lock_guard lock(g_mutex);
    if (*comm != nullptr) {
      owners[*comm] = listener;
      dead.erase(*comm);
    }
    return result;
  };
  table.close_listen = [](void* listener) {
    const std::lock_guard lock(g_mutex);
    for (const auto& [comm, owner] : owners) {
      if (owner == listener) dead.insert(comm);
    }
    return good().close_listen(listener);
  };
  table.irecv = [](void* comm, int n, void** data, std::size_t* sizes, int* tags, void** mhandles,
                   void** profilers, void** request) {
    {
      const std::lock_guard lock(g_mutex);
      if (dead.contains(comm)) return NetResult::internal_error;
    }
    return good().irecv(comm, n, data, sizes, tags, mhandles, profilers, request);
  };
}

/// With many listeners the handle is another one's.
void handles_mixed_up(NetV12& table) {
  static std::map<void*, std::array<std::byte, nccl::kHandleMaxSize>> open;
  table.listen = [](void* context, int device, void* handle, void** comm) {
    const NetResult result = good().listen(context, device, handle, comm);
    const std::lock_guard lock(g_mutex);
    std::memcpy(open[*comm].data(), handle, nccl::kHandleMaxSize);
    if (open.size() == 9) {
      std::memcpy(handle, open.begin()->second.data(), nccl::kHandleMaxSize);
    }
    return result;
  };
  table.close_listen = [](void* listener) {
    const std::lock_guard lock(g_mutex);
    open.erase(listener);
    return good().close_listen(listener);
  };
}

/// Fails once three listeners have been closed before anybody was accepted.
void remembers_the_abandoned(NetV12& table) {
  static std::set<void*> waiting;
  static int abandoned = 0;
  table.listen = [](void* context, int device, void* handle, void** comm) {
    const NetResult result = good().listen(context, device, handle, comm);
    const std::lock_guard lock(g_mutex);
    waiting.insert(*comm);
    return abandoned >= 3 ? NetResult::internal_error : result;
  };
  table.accept = [](void* listener, void** comm, NetDeviceHandle** device) {
    const NetResult result = good().accept(listener, comm, device);
    const std::lock_guard lock(g_mutex);
    if (*comm != nullptr) waiting.erase(listener);
    return result;
  };
  table.close_listen = [](void* listener) {
    const std::lock_guard lock(g_mutex);
    abandoned += static_cast<int>(waiting.erase(listener));
    return good().close_listen(listener);
  };
}

/// A listener of this process is none to connect to.
void no_self_loop(NetV12& table) {
  static std::set<std::uint64_t> own;  // what the handles have at 8: never the same twice
  static const auto key_of = [](void* handle) {
    std::uint64_t key = 0;
    std::memcpy(&key, static_cast<std::byte*>(handle) + 8, sizeof key);
    return key;
  };
  table.listen = [](void* context, int device, void* handle, void** comm) {
    const NetResult result = good().listen(context, device, handle, comm);
    const std::lock_guard lock(g_mutex);
    own.insert(key_of(handle));
    return result;
  };
  table.connect = [](void* context, int device, void* handle, void** comm, NetDeviceHandle** dev) {
    {
      const std::lock_guard lock(g_mutex);
      *comm = nullptr;
      if (own.contains(key_of(handle))) return NetResult::success;
    }
    return good().connect(context, device, handle, comm, dev);
  };
}

/// Two threads that open connections at once are one too many.
void opens_alone(NetV12& table) {
  static std::atomic<int> inside{0};
  table.accept = [](void* listener, void** comm, NetDeviceHandle** device) {
    const bool crowded = ++inside > 1;
    sched_yield();  // so that it is seen on a machine of few cores
    const NetResult result = good().accept(listener, comm, device);
    --inside;
    return crowded ? NetResult::internal_error : result;
  };
}

constexpr Mutant kMutants[] = {
    {"no-self-loop", no_self_loop},
    {"opens-alone", opens_alone},
    {"long-handle",
     [](NetV12& table) {
       table.listen = [](void* context, int device, void* handle, void** comm) {
         const NetResult result = good().listen(context, device, handle, comm);
         std::memset(static_cast<std::byte*>(handle) + nccl::kHandleMaxSize, 0, 4);
         return result;
       };
     }},
    {"connect-waits",
     [](NetV12& table) {
       table.connect = [](void* context, int device, void* handle, void** comm,
                          NetDeviceHandle** device_comm) {
         dawdle();
         return good().connect(context, device, handle, comm, device_comm);
       };
     }},
    {"accept-waits",
     [](NetV12& table) {
       table.accept = [](void* listener, void** comm, NetDeviceHandle** device) {
         const NetResult result = good().accept(listener, comm, device);
         if (*comm == nullptr) dawdle();
         return result;
       };
     }},
    {"wants-a-device-handle",
     [](NetV12& table) {
       table.connect = [](void* context, int device, void* handle, void** comm,
                          NetDeviceHandle** device_comm) {
         *device_comm = nullptr;
         return good().connect(context, device, handle, comm, device_comm);
       };
     }},
    {"dead-listener-waits",
     [](NetV12& table) {
       table.connect = [](void* context, int device, void* handle, void** comm,
                          NetDeviceHandle** device_comm) {
         const NetResult result = good().connect(context, device, handle, comm, device_comm);
         if (result != NetResult::success) dawdle();
         return result;
       };
     }},
    {"handle-stays-in-place", handle_stays},
    {"handle-is-of-this-process", handle_is_local},
    {"listener-owns-what-it-accepted", listener_owns},
    {"handles-mixed-up", handles_mixed_up},
    {"remembers-the-abandoned", remembers_the_abandoned},
};

}  // namespace

std::span<const Mutant> connect_mutants() { return kMutants; }

}  // namespace gdrx::mutants
