// SPDX-License-Identifier: Apache-2.0
#include "nccl/driver.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cstdint>
#include <string_view>

#include "base/system_library.hpp"

namespace gdrx::nccl::driver {
namespace {

using Status = int;
using Pointer = unsigned long long;  // CUdeviceptr

struct Calls {
  Status (*init)(unsigned) = nullptr;
  Status (*count)(int*) = nullptr;
  Status (*device)(int*) = nullptr;  // of the current context
  Status (*retain)(void**, int) = nullptr;
  Status (*use)(void*) = nullptr;
  Status (*allocate)(Pointer*, std::size_t) = nullptr;
  Status (*free)(Pointer) = nullptr;
  Status (*attribute)(void*, int, Pointer) = nullptr;
  bool found = false;
};

Calls load() noexcept {
  Calls calls;
  SystemLibrary library = SystemLibrary::open({"libcuda.so.1"});
  library.keep();
  const bool whole = library.take({
      {calls.init, "cuInit"},
      {calls.count, "cuDeviceGetCount"},
      {calls.device, "cuCtxGetDevice"},
      {calls.retain, "cuDevicePrimaryCtxRetain"},
      {calls.use, "cuCtxSetCurrent"},
      {calls.allocate, "cuMemAlloc_v2"},
      {calls.free, "cuMemFree_v2"},
      {calls.attribute, "cuPointerGetAttribute"},
  });
  calls.found = whole && calls.init(0) == 0;
  return calls;
}

const Calls& calls() noexcept {
  static const Calls kCalls = load();
  return kCalls;
}

using Question = Status (*)(int*);

using Path = std::array<char, PATH_MAX>;

// One that a program has by dlopen() alone, as Python's modules have it. The linker's lock is held.
int find_apart(dl_phdr_info* library, std::size_t, void* path) noexcept {
  const std::string_view name = library->dlpi_name;
  auto& found = *static_cast<Path*>(path);
  if (name.find("/libcudart.so") == name.npos || name.size() >= found.size()) return 0;
  std::copy(name.begin(), name.end(), found.begin());
  return 1;
}

// Before CUDA 12 cudaSetDevice() makes no context: what it has set the program's runtime alone
// knows. One that is linked into the program itself cannot be found.
Question runtimes_device() noexcept {
  void* found = dlsym(RTLD_DEFAULT, "cudaGetDevice");
  Path path{};
  if (found == nullptr && dl_iterate_phdr(find_apart, &path) != 0) {
    void* const opened = dlopen(path.data(), RTLD_LAZY | RTLD_NOLOAD);
    if (opened != nullptr) {
      found = dlsym(opened, "cudaGetDevice");
      dlclose(opened);  // who has opened it has it still
    }
  }
  return reinterpret_cast<Question>(found);
}

bool has_context() noexcept {
  if (!calls().found) return false;
  int device = 0;
  if (calls().device(&device) == 0) return true;
  void* context = nullptr;
  return calls().retain(&context, current_device()) == 0 && calls().use(context) == 0;
}

}  // namespace

int device_count() noexcept {
  int count = 0;
  return calls().found && calls().count(&count) == 0 ? count : 0;
}

int current_device() noexcept {
  if (device_count() == 0) return -1;
  int device = 0;
  const Question ask_runtime = runtimes_device();
  if (ask_runtime != nullptr && ask_runtime(&device) == 0) return device;
  return calls().device(&device) == 0 ? device : 0;
}

bool allocate(void** memory, std::size_t bytes) noexcept {
  Pointer made = 0;
  if (!has_context() || calls().allocate(&made, bytes) != 0) return false;
  *memory = std::bit_cast<void*>(made);
  return true;
}

bool release(void* memory) noexcept {
  return has_context() && calls().free(reinterpret_cast<std::uintptr_t>(memory)) == 0;
}

bool knows(const void* memory) noexcept {
  constexpr int kMemoryType = 2;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
  unsigned type = 0;
  return has_context() &&
         calls().attribute(&type, kMemoryType, reinterpret_cast<std::uintptr_t>(memory)) == 0;
}

}  // namespace gdrx::nccl::driver
