// SPDX-License-Identifier: Apache-2.0
// The driver's memory by handles: made, exported as file descriptors, and mapped at reserved
// addresses. What was unmapped or never given access faults.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "tests/emulated/cuda/file.hpp"

using namespace gdrx::emulated;  // NOLINT(google-build-using-namespace): CUDA's names are global

namespace {

/// Which devices may read and write what is mapped, by its address.
struct Access {
  std::mutex mutex;
  std::map<CUdeviceptr, std::set<int>> devices;
};
Access& access() {
  static Access& instance = *new Access;
  return instance;
}

}  // namespace

CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *bytes = std::size_t{2} << 20;  // as a GPU's; the tests' own handles may be smaller
  return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* what, unsigned long long) {
  if (bytes == 0 || bytes % kPage != 0) return CUDA_ERROR_INVALID_VALUE;
  auto file = File::create(bytes);
  if (!file) return CUDA_ERROR_OUT_OF_MEMORY;
  file->made = *what;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(new Handle(std::move(file)));
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  delete reinterpret_cast<Handle*>(handle);
  return CUDA_SUCCESS;
}
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  const auto range = range_at(address);
  if (!range || range->kind != Kind::mapped) return CUDA_ERROR_INVALID_VALUE;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(new Handle(range->file));
  return CUDA_SUCCESS;
}
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* found,
                                                CUmemGenericAllocationHandle handle) {
  *found = (*reinterpret_cast<Handle*>(handle))->made;
  return CUDA_SUCCESS;
}
CUresult cuMemExportToShareableHandle(void* fd, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long) {
  const Handle& file = *reinterpret_cast<Handle*>(handle);
  if ((file->made.requestedHandleTypes & type) == 0) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int*>(fd) = fcntl(file->fd(), F_DUPFD_CLOEXEC, 0);
  return *static_cast<int*>(fd) >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* descriptor,
                                        CUmemAllocationHandleType) {
  const int given = static_cast<int>(reinterpret_cast<std::intptr_t>(descriptor));
  struct stat facts {};
  const int fd = fcntl(given, F_DUPFD_CLOEXEC, 0);
  if (fd < 0 || fstat(fd, &facts) != 0) return CUDA_ERROR_INVALID_HANDLE;
  auto file = std::make_shared<File>(fd, static_cast<std::size_t>(facts.st_size));
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(new Handle(std::move(file)));
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* begin, std::size_t bytes, std::size_t, CUdeviceptr,
                             unsigned long long) {
  void* const found = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *begin = reinterpret_cast<CUdeviceptr>(found);
  return found != MAP_FAILED ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemAddressFree(CUdeviceptr begin, std::size_t bytes) {
  return munmap(pointer(begin), bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemMap(CUdeviceptr at, std::size_t bytes, std::size_t, CUmemGenericAllocationHandle from,
                  unsigned long long) {
  const Handle& file = *reinterpret_cast<Handle*>(from);
  auto* const begin = static_cast<std::byte*>(pointer(at));
  if (bytes != file->bytes() || map(*file, begin, PROT_NONE) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  put({begin, bytes, file->made.location.id, Kind::mapped, file});
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr at, std::size_t bytes) {
  if (!take(pointer(at), Kind::mapped)) return CUDA_ERROR_INVALID_VALUE;
  {
    const std::lock_guard lock(access().mutex);
    access().devices.erase(at);
  }
  void* const left =
      mmap(pointer(at), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return left != MAP_FAILED ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
// Two GPUs (driver 580): of two threads that give a range to the same GPU one is refused.
CUresult cuMemSetAccess(CUdeviceptr at, std::size_t bytes, const CUmemAccessDesc* what,
                        std::size_t) {
  static std::atomic<CUdeviceptr> given = 0;
  CUdeviceptr nothing = 0;
  const bool first = given.compare_exchange_strong(nothing, at);
  if (!first && nothing == at) return CUDA_ERROR_ALREADY_MAPPED;
  usleep(200);
  if (first) given = 0;
  {
    const std::lock_guard lock(access().mutex);
    access().devices[at].insert(what->location.id);
  }
  return mprotect(pointer(at), bytes, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemGetAccess(unsigned long long* allowed, const CUmemLocation* where, CUdeviceptr at) {
  const auto range = range_at(pointer(at));
  if (!range || range->kind != Kind::mapped) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(access().mutex);
  // A range of several handles was given as a whole.
  const auto from = access().devices.upper_bound(at);
  const bool known =
      from != access().devices.begin() && std::prev(from)->second.contains(where->id);
  *allowed = known ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}
