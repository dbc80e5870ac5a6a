// SPDX-License-Identifier: Apache-2.0
#include "pool.hpp"

#include <dlfcn.h>

#include <map>
#include <mutex>

namespace gdrx_torch {
namespace {

// The driver is loaded, as PyTorch has a context when it allocates: nothing of CUDA is linked here.
struct Driver {
  int (*allocate)(std::uint64_t* address, std::size_t bytes) = nullptr;
  int (*free)(std::uint64_t address) = nullptr;
};

const Driver& driver() {
  static const Driver loaded = [] {
    Driver found;
    if (void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
      found.allocate = reinterpret_cast<decltype(found.allocate)>(dlsym(library, "cuMemAlloc_v2"));
      found.free = reinterpret_cast<decltype(found.free)>(dlsym(library, "cuMemFree_v2"));
    }
    return found;
  }();
  return loaded;
}

struct Numbers {
  std::mutex lock;
  std::map<std::uintptr_t, std::int64_t> of;
  std::int64_t next = 0;
};

// Never destroyed: pools may end after main.
Numbers& numbers() {
  static auto* const all = new Numbers;
  return *all;
}

}  // namespace

std::int64_t allocated_as(std::uintptr_t address) {
  Numbers& all = numbers();
  const std::lock_guard lock(all.lock);
  const auto found = all.of.find(address);
  return found == all.of.end() ? -1 : found->second;
}

}  // namespace gdrx_torch

void* gdrx_pool_alloc(ssize_t bytes, int, void*) {
  std::uint64_t address = 0;
  const auto& cuda = gdrx_torch::driver();
  if (bytes <= 0 || cuda.allocate == nullptr || cuda.free == nullptr ||
      cuda.allocate(&address, static_cast<std::size_t>(bytes)) != 0) {
    return nullptr;
  }
  gdrx_torch::Numbers& all = gdrx_torch::numbers();
  const std::lock_guard lock(all.lock);
  all.of[address] = all.next++;
  return reinterpret_cast<void*>(address);
}

void gdrx_pool_free(void* memory, ssize_t, int, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  {
    gdrx_torch::Numbers& all = gdrx_torch::numbers();
    const std::lock_guard lock(all.lock);
    if (all.of.erase(address) == 0) return;
  }
  gdrx_torch::driver().free(address);
}
