// SPDX-License-Identifier: Apache-2.0
#include "mpi/cuda.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "mpi/library.hpp"

namespace gdrx::mpi {
namespace {

using Address = unsigned long long;  // CUdeviceptr
using Context = void*;
constexpr int kMemoryType = 2;   // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int kOrdinal = 9;      // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
constexpr unsigned kDevice = 2;  // CU_MEMORYTYPE_DEVICE
constexpr int kMostGpus = 64;

struct Driver {
  int (*attribute)(void*, int, Address) = nullptr;
  int (*retain)(Context*, int) = nullptr;
  int (*push)(Context) = nullptr;
  int (*pop)(Context*) = nullptr;
  int (*synchronize)(void*) = nullptr;
  int (*from_gpu)(void*, Address, std::size_t) = nullptr;
  int (*to_gpu)(Address, const void*, std::size_t) = nullptr;
};
Driver driver;
std::atomic<bool> found{false};

template <class Function>
bool find(void* library, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool load() noexcept {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library != nullptr && find(library, "cuPointerGetAttribute", driver.attribute) &&
         find(library, "cuDevicePrimaryCtxRetain", driver.retain) &&
         find(library, "cuCtxPushCurrent_v2", driver.push) &&
         find(library, "cuCtxPopCurrent_v2", driver.pop) &&
         find(library, "cuStreamSynchronize", driver.synchronize) &&
         find(library, "cuMemcpyDtoH_v2", driver.from_gpu) &&
         find(library, "cuMemcpyHtoD_v2", driver.to_gpu);
}

// The loader appends what it loads: as long as nothing is behind the last library, none has come.
// It is held, so that it stays.
std::mutex libraries_mutex;
std::atomic<link_map*> last{nullptr};

/// The end of the loader's list, by its name: another thread may close that library meanwhile.
struct End {
  link_map* at = nullptr;
  std::array<char, 4096> name{};
};

// The loader's, which holds its lock: nothing comes or goes.
int walk(dl_phdr_info*, std::size_t, void* found_end) {
  auto& end = *static_cast<End*>(found_end);
  while (end.at->l_next != nullptr) end.at = end.at->l_next;
  const std::size_t length = std::strlen(end.at->l_name);
  if (length < end.name.size()) std::memcpy(end.name.data(), end.at->l_name, length + 1);
  return 1;  // the first of them is enough
}

bool look_again() noexcept {
  const std::lock_guard lock(libraries_mutex);
  if (found) return true;
  End end{last.load(), {}};
  if (end.at == nullptr) {
    void* const program = dlopen(nullptr, RTLD_LAZY);
    if (program == nullptr || dlinfo(program, RTLD_DI_LINKMAP, &end.at) != 0) return false;
  }
  dl_iterate_phdr(walk, &end);
  if (dlopen(end.name.data(), RTLD_LAZY | RTLD_NOLOAD) == end.at) last = end.at;
  found = load();
  return found;
}

[[noreturn]] void die(const char* what, int code) noexcept {
  std::fprintf(stderr, "gdrx: CUDA does not %s a buffer on a GPU (error %d)\n", what, code);
  std::abort();
}

// The primary context of the GPU whose memory that is, current on this thread for a while.
class Current {
 public:
  explicit Current(const void* memory) noexcept {
    static std::array<std::atomic<Context>, kMostGpus> contexts{};
    int gpu = 0;
    int code = driver.attribute(&gpu, kOrdinal, reinterpret_cast<Address>(memory));
    if (code != 0 || gpu < 0 || gpu >= kMostGpus) die("find the GPU of", code);
    Context context = contexts[static_cast<std::size_t>(gpu)];
    if (context == nullptr) {
      code = driver.retain(&context, gpu);
      if (code != 0) die("open the GPU of", code);
      contexts[static_cast<std::size_t>(gpu)] = context;
    }
    code = driver.push(context);
    if (code != 0) die("use the GPU of", code);
  }
  ~Current() {
    Context old = nullptr;
    driver.pop(&old);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

}  // namespace

bool has_cuda() noexcept {
  if (found.load(std::memory_order_acquire)) return true;
  link_map* const end = last.load(std::memory_order_acquire);
  return (end == nullptr || end->l_next != nullptr) && look_again();
}

bool is_on_gpu(const void* at) noexcept {
  unsigned type = 0;
  return at != nullptr &&
         driver.attribute(&type, kMemoryType, reinterpret_cast<Address>(at)) == 0 &&
         type == kDevice;
}

bool mpi_knows_gpus() noexcept {
  static const bool kKnows = [] {
    const auto query = reinterpret_cast<int (*)()>(find_function("MPIX_Query_cuda_support"));
    return query != nullptr && query() == 1;
  }();
  return kKnows;
}

void copy_from_gpu(void* to, const void* from, std::size_t bytes) noexcept {
  const Current current(from);
  const int code = driver.from_gpu(to, reinterpret_cast<Address>(from), bytes);
  if (code != 0) die("read", code);
}

void copy_to_gpu(void* to, const void* from, std::size_t bytes) noexcept {
  const Current current(to);
  int code = driver.to_gpu(reinterpret_cast<Address>(to), from, bytes);
  if (code == 0) code = driver.synchronize(nullptr);  // a copy of other memory may return before
  if (code != 0) die("write", code);
}

}  // namespace gdrx::mpi
