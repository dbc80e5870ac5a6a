// SPDX-License-Identifier: Apache-2.0
// A CUDA driver of memory files: what one process exports another maps, no CPU may touch it, and
// copies happen some time after they were asked for. Here what hands memory over by descriptors;
// contexts and copies are in fake_cuda_stream.cpp, what NICs need in fake_cuda_nic.cpp.
#include "tests/plugin/fake_cuda.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace fake_cuda {

std::mutex mutex;
std::map<Pointer, Memory> mapped;

std::map<Pointer, Memory>::iterator find(Pointer at) {
  auto found = mapped.upper_bound(at);
  if (found == mapped.begin() || at >= (--found)->first + found->second.size) return mapped.end();
  return found;
}

char* visible(Pointer at) {
  const auto found = find(at);
  if (found != mapped.end()) return found->second.shadow + (at - found->first);
  return reinterpret_cast<char*>(at);  // host memory
}

Memory memory_of(int fd, std::size_t size) {
  Memory memory{fd, size, nullptr};
  memory.shadow =
      static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  return memory;
}

void* allocate(std::size_t size) {
  const std::lock_guard lock(mutex);
  const int fd = memfd_create("gpu", 0);
  if (ftruncate(fd, static_cast<off_t>(size)) != 0) return nullptr;
  void* at = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mapped[reinterpret_cast<Pointer>(at)] = memory_of(fd, size);
  return at;
}

}  // namespace fake_cuda

namespace {

using namespace fake_cuda;  // NOLINT(google-build-using-namespace): this file's own

std::map<unsigned long long, Memory> allocations;  // by handle
unsigned long long next_handle = 1;
}  // namespace

FAKE void* fake_cuda_allocate(std::size_t size) { return allocate(size); }
FAKE void* fake_cuda_see(void* at) {
  const std::lock_guard lock(mutex);
  return visible(reinterpret_cast<Pointer>(at));
}

FAKE int cuCtxGetDevice(int* out) {
  *out = 0;
  return 0;
}
FAKE int cuMemGetAddressRange_v2(Pointer* base, std::size_t* size, Pointer at) {
  const std::lock_guard lock(mutex);
  const auto found = find(at);
  if (found == mapped.end()) return kInvalid;
  *base = found->first;
  *size = found->second.size;
  return 0;
}
FAKE int cuMemRetainAllocationHandle(unsigned long long* handle, void* at) {
  const std::lock_guard lock(mutex);
  const auto found = find(reinterpret_cast<Pointer>(at));
  if (found == mapped.end()) return kInvalid;
  *handle = next_handle++;
  allocations[*handle] = found->second;
  return 0;
}
FAKE int cuMemRelease(unsigned long long handle) {
  const std::lock_guard lock(mutex);
  return allocations.erase(handle) == 1 ? 0 : kInvalid;
}
FAKE int cuMemExportToShareableHandle(void* out, unsigned long long handle, int,
                                      unsigned long long) {
  const std::lock_guard lock(mutex);
  const int fd = dup(allocations.at(handle).fd);
  std::memcpy(out, &fd, sizeof fd);
  return 0;
}
FAKE int cuMemImportFromShareableHandle(unsigned long long* handle, void* os_handle, int) {
  if (blocked()) return kInvalidContext;
  const std::lock_guard lock(mutex);
  const int fd = dup(static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle)));
  const off_t size = lseek(fd, 0, SEEK_END);
  if (size <= 0) return kInvalid;
  *handle = next_handle++;
  allocations[*handle] = memory_of(fd, static_cast<std::size_t>(size));
  return 0;
}
FAKE int cuMemAddressReserve(Pointer* out, std::size_t size, std::size_t, Pointer,
                             unsigned long long) {
  void* at = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *out = reinterpret_cast<Pointer>(at);
  return at == MAP_FAILED ? kInvalid : 0;
}
FAKE int cuMemAddressFree(Pointer at, std::size_t size) {
  return munmap(reinterpret_cast<void*>(at), size);
}
FAKE int cuMemMap(Pointer at, std::size_t size, std::size_t, unsigned long long handle,
                  unsigned long long) {
  if (blocked()) return kInvalidContext;
  const std::lock_guard lock(mutex);
  if (allocations.at(handle).size < size) return kInvalid;
  mapped[at] = allocations.at(handle);
  return 0;
}
FAKE int cuMemUnmap(Pointer at, std::size_t) {
  const std::lock_guard lock(mutex);
  return mapped.erase(at) == 1 ? 0 : kInvalid;
}
FAKE int cuMemSetAccess(Pointer, std::size_t, const void*, std::size_t) {
  return blocked() ? kInvalidContext : 0;
}
FAKE int cuGetErrorString(int, const char** text) {
  *text = "the fake driver refuses";
  return 0;
}
