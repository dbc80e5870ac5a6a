// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "net-conformance/mutants/track.hpp"

namespace gdrx::mutants {

namespace {

constexpr std::uintptr_t kPage = 4096;
std::mutex g_mutex;  // of all below

/// The whole pages of some memory, out of a child's sight or back in it.
void advise(const void* data, std::size_t size, int advice) {
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(data) & ~(kPage - 1);
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(data) + size;
  madvise(reinterpret_cast<void*>(start), end - start, advice);
}

struct Registered {
  std::byte* data;
  std::size_t size;
  std::vector<std::byte> before;  // what it held at the last fork
};
std::map<void*, Registered> g_live;

/// As if a NIC wrote on into the pages that a fork has left to the child.
void pages_go_to_the_child(NetV12& table) {
  static const int once = pthread_atfork(
      [] {
        g_mutex.lock();
        for (auto& [mhandle, live] : g_live) live.before.assign(live.data, live.data + live.size);
      },
      [] { g_mutex.unlock(); }, [] { g_mutex.unlock(); });
  if (once != 0) std::abort();
  table.reg_mr = [](void* comm, void* data, std::size_t size, int type, void** mhandle) {
    const NetResult result = good().reg_mr(comm, data, size, type, mhandle);
    const std::lock_guard lock(g_mutex);
    g_live[*mhandle] = {static_cast<std::byte*>(data), size, {}};
    return result;
  };
  table.dereg_mr = [](void* comm, void* mhandle) {
    {
      const std::lock_guard lock(g_mutex);
      g_live.erase(mhandle);
    }
    return good().dereg_mr(comm, mhandle);
  };
  table.test = [](void* request, int* done, int* sizes) {
    const Note note = note_of(request);
    const NetResult result = good().test(request, done, sizes);
    if (result != NetResult::success || *done == 0 || note.is_send) return result;
    const std::lock_guard lock(g_mutex);
    for (const auto& [mhandle, live] : g_live) {
      if (note.n == 1 && note.data[0] == live.data && !live.before.empty()) {
        std::memcpy(live.data, live.before.data(), live.size);
      }
    }
    return result;
  };
}

void hides_memory(NetV12& table) {
  table.reg_mr = [](void* comm, void* data, std::size_t size, int type, void** mhandle) {
    const NetResult result = good().reg_mr(comm, data, size, type, mhandle);
    const std::lock_guard lock(g_mutex);
    g_live[*mhandle] = {static_cast<std::byte*>(data), size, {}};
    advise(data, size, MADV_DONTFORK);
    return result;
  };
  table.dereg_mr = [](void* comm, void* mhandle) {
    const std::lock_guard lock(g_mutex);
    const auto gone = g_live.extract(mhandle);
    if (gone) advise(gone.mapped().data, gone.mapped().size, MADV_DOFORK);
    return good().dereg_mr(comm, mhandle);
  };
}

/// A plugin that registers small blocks of its own: their pages hold other things, too. So many
/// that they do not all fit where something was freed, alone on its page.
void hides_its_heap(NetV12& table) {
  table.listen = [](void* context, int device, void* handle, void** comm) {
    static constexpr std::size_t kBlock = 200;
    for (int i = 0; i < 64; ++i) {
      if (void* block = std::malloc(kBlock); block != nullptr) advise(block, kBlock, MADV_DONTFORK);
    }
    return good().listen(context, device, handle, comm);
  };
}

constexpr Mutant kMutants[] = {
    {"pages-go-to-the-child", pages_go_to_the_child},
    {"hides-memory-from-children", hides_memory},
    {"hides-its-heap-from-children", hides_its_heap},
};

}  // namespace

std::span<const Mutant> fork_mutants() { return kMutants; }

}  // namespace gdrx::mutants
