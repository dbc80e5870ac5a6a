// SPDX-License-Identifier: Apache-2.0
// The part of the fake driver that a NIC's driver goes by: what memory is, copies, and its pages as
// a descriptor.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "tests/plugin/fake_cuda.hpp"

namespace {

using namespace fake_cuda;  // NOLINT(google-build-using-namespace): this file's own

constexpr int kMemoryType = 2;  // CUpointer_attribute
constexpr int kOrdinal = 9;
constexpr int kRdmaSupported = 116;  // CUdevice_attribute
constexpr int kDmaBufSupported = 124;
constexpr unsigned kOnDevice = 2;
constexpr Pointer kPage = 4096;

int copy(Pointer to, Pointer from, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  std::memcpy(visible(to), visible(from), bytes);
  return 0;
}
Pointer address(const void* host) { return reinterpret_cast<Pointer>(host); }

std::atomic<int> owners = 0;
std::atomic<int> life = 1;

}  // namespace

int fake_cuda::context_life() { return life; }

FAKE int cuInit(unsigned) { return 0; }
FAKE int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
FAKE int cuDeviceGet(int* device, int ordinal) {
  *device = 0;
  return ordinal == 0 ? 0 : kInvalid;
}
FAKE int cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "Fake", static_cast<std::size_t>(size));
  return 0;
}
FAKE int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == kRdmaSupported || attribute == kDmaBufSupported ? 1 : 0;
  return 0;
}
FAKE int cuDevicePrimaryCtxRetain(void** context, int) {
  ++owners;
  *context = application();
  return 0;
}
FAKE int cuDevicePrimaryCtxRelease_v2(int) {
  if (--owners == 0) ++life;
  return 0;
}
FAKE int cuCtxGetId(void*, unsigned long long* id) {
  if (std::getenv("FAKE_CUDA_HAS_NO_IDS") != nullptr)
    return kInvalid;  // as a driver that is older than they are
  *id = static_cast<unsigned long long>(life.load());
  return 0;
}

FAKE int cuPointerGetAttribute(void* value, int attribute, Pointer at) {
  const std::lock_guard lock(mutex);
  if (find(at) == mapped.end()) return kInvalid;
  if (attribute == kMemoryType) std::memcpy(value, &kOnDevice, sizeof kOnDevice);
  constexpr int kFirst = 0;
  if (attribute == kOrdinal) std::memcpy(value, &kFirst, sizeof kFirst);
  return attribute == kMemoryType || attribute == kOrdinal ? 0 : kInvalid;
}
FAKE int cuPointerGetAttributes(unsigned count, int* attributes, void** values, Pointer at) {
  for (unsigned i = 0; i < count; ++i) {
    if (cuPointerGetAttribute(values[i], attributes[i], at) != 0) std::memset(values[i], 0, 4);
  }
  return 0;
}
FAKE int cuPointerSetAttribute(const void*, int, Pointer) { return 0; }

FAKE int cuMemAlloc_v2(Pointer* at, std::size_t bytes) {
  void* made = allocate((bytes + kPage - 1) / kPage * kPage);
  *at = address(made);
  return made == nullptr ? kInvalid : 0;
}
FAKE int cuMemFree_v2(Pointer at) {
  const std::lock_guard lock(mutex);
  const auto found = mapped.find(at);
  if (found == mapped.end()) return kInvalid;
  munmap(reinterpret_cast<void*>(at), found->second.size);
  munmap(found->second.shadow, found->second.size);
  close(found->second.fd);
  mapped.erase(found);
  return 0;
}
FAKE int cuMemcpyDtoH_v2(void* to, Pointer from, std::size_t bytes) {
  return copy(address(to), from, bytes);
}
FAKE int cuMemcpyHtoD_v2(Pointer to, const void* from, std::size_t bytes) {
  return copy(to, address(from), bytes);
}
FAKE int cuMemcpyDtoHAsync_v2(void* to, Pointer from, std::size_t bytes, void* stream) {
  if (ended(stream)) return kInvalidContext;
  return copy(address(to), from, bytes);
}
FAKE int cuMemcpyHtoDAsync_v2(Pointer to, const void* from, std::size_t bytes, void* stream) {
  if (ended(stream)) return kInvalidContext;
  return copy(to, address(from), bytes);
}

// A file as long as the range, which is of whole pages, as the driver demands.
FAKE int cuMemGetHandleForAddressRange(void* out, Pointer at, std::size_t bytes, int,
                                       unsigned long long) {
  const std::lock_guard lock(mutex);
  const auto found = find(at);
  if (found == mapped.end() || at % kPage != 0 || bytes % kPage != 0 ||
      bytes > found->first + found->second.size - at) {
    return kInvalid;
  }
  const int fd = memfd_create("dma-buf", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return kInvalid;
  std::memcpy(out, &fd, sizeof fd);
  return 0;
}
