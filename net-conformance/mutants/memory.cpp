// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "net-conformance/mutants/track.hpp"

namespace gdrx::mutants {

namespace {

std::mutex g_mutex;
constexpr std::size_t kTooMuch = std::size_t{1} << 31;

template <auto refuses>
NetResult registers(void* comm, void* data, std::size_t size, int type, void** mhandle) {
  return refuses(comm, data, size) ? NetResult::system_error
                                   : good().reg_mr(comm, data, size, type, mhandle);
}

template <auto refuses>
void refusing(NetV12& table) {
  table.reg_mr = registers<refuses>;
}

struct Registered {
  std::byte* data;
  std::size_t size;
};

/// Giving one registration back takes those that overlap with it along.
void no_counts(NetV12& table) {
  static std::map<void*, Registered> live;
  static std::vector<Registered> dead;
  table.reg_mr = [](void* comm, void* data, std::size_t size, int type, void** mhandle) {
    const NetResult result = good().reg_mr(comm, data, size, type, mhandle);
    const std::lock_guard lock(g_mutex);
    live[*mhandle] = {static_cast<std::byte*>(data), size};
    return result;
  };
  table.dereg_mr = [](void* comm, void* mhandle) {
    const std::lock_guard lock(g_mutex);
    const Registered gone = live[mhandle];
    live.erase(mhandle);
    for (const auto& [handle, other] : live) {
      if (gone.data < other.data + other.size && other.data < gone.data + gone.size) {
        dead.push_back(other);
      }
    }
    return good().dereg_mr(comm, mhandle);
  };
  table.irecv = [](void* comm, int n, void** data, std::size_t* sizes, int* tags, void** mhandles,
                   void** profilers, void** request) {
    {
      const std::lock_guard lock(g_mutex);
      for (const Registered& each : dead) {
        if (data[0] >= each.data && data[0] < each.data + each.size) {
          return NetResult::invalid_argument;
        }
      }
    }
    return good().irecv(comm, n, data, sizes, tags, mhandles, profilers, request);
  };
}

/// Half a MiB of a registration is of use.
void first_part_alone(NetV12& table) {
  constexpr static std::size_t kUseful = std::size_t{1} << 19;
  static std::map<void*, std::byte*> starts;
  table.reg_mr = [](void* comm, void* data, std::size_t size, int type, void** mhandle) {
    const NetResult result = good().reg_mr(comm, data, size, type, mhandle);
    const std::lock_guard lock(g_mutex);
    starts[*mhandle] = static_cast<std::byte*>(data);
    return result;
  };
  table.isend = [](void* comm, void* data, std::size_t size, int tag, void* mhandle, void* profiler,
                   void** request) {
    {
      const std::lock_guard lock(g_mutex);
      if (starts[mhandle] + kUseful < data) return NetResult::invalid_argument;
    }
    return good().isend(comm, data, size, tag, mhandle, profiler, request);
  };
}

constexpr Mutant kMutants[] = {
    {"first-part-alone", first_part_alone},
    {"wants-aligned-memory", refusing<[](void*, void* data, std::size_t) {
       return reinterpret_cast<std::uintptr_t>(data) % 2 != 0;
     }>},
    {"wants-less-than-2-gib",
     refusing<[](void*, void*, std::size_t size) { return kTooMuch <= size; }>},
    {"registers-when-idle-alone",
     refusing<[](void* comm, void*, std::size_t) { return 0 < under_way(comm); }>},
    {"does-not-count-registrations", no_counts},
    {"takes-any-dma-buf",
     [](NetV12& table) {
       table.get_properties = [](int device, nccl::NetPropertiesV12* properties) {
         const NetResult result = good().get_properties(device, properties);
         properties->ptr_support |= nccl::kPtrDmaBuf;
         return result;
       };
       table.reg_mr_dma_buf = [](void* comm, void* data, std::size_t size, int type, std::uint64_t,
                                 int, void** mhandle) {
         return good().reg_mr(comm, data, size, type, mhandle);
       };
     }},
};

}  // namespace

std::span<const Mutant> memory_mutants() { return kMutants; }

}  // namespace gdrx::mutants
