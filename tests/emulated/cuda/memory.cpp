// SPDX-License-Identifier: Apache-2.0
// Memory of emulated GPUs: memfds, mapped here and, by IPC handles, in other processes. What was
// freed faults.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <shared_mutex>
#include <string>
#include <utility>

#include "tests/emulated/cuda/file.hpp"

namespace gdrx::emulated {

namespace {

std::mutex mutex;
std::map<const std::byte*, Range>& ranges() {
  static auto& all = *new std::map<const std::byte*, Range>;
  return all;
}

}  // namespace

std::byte* map(const File& file, std::byte* at, int protection) {
  void* const found = mmap(at, file.bytes(), protection,
                           MAP_SHARED | (at != nullptr ? MAP_FIXED : 0), file.fd(), 0);
  return found == MAP_FAILED ? nullptr : static_cast<std::byte*>(found);
}

void put(const Range& range) {
  const std::lock_guard lock(mutex);
  ranges()[range.begin] = range;
}

std::optional<Range> take(const void* begin, Kind kind) {
  const std::lock_guard lock(mutex);
  const auto found = ranges().find(static_cast<const std::byte*>(begin));
  if (found == ranges().end() || found->second.kind != kind) return std::nullopt;
  const Range range = found->second;
  ranges().erase(found);
  return range;
}

namespace {

/// As the driver has it: who allocates pinned memory waits for who copies to other memory, and so
/// for his stream.
std::shared_mutex& pageable_copies() {
  static std::shared_mutex mutex;
  return mutex;
}

cudaError_t create(void** memory, std::size_t bytes, Kind kind) {
  if (const auto refused = refuse_in_capture(); refused != cudaSuccess) return told(refused);
  if (bytes == 0) return told(cudaErrorInvalidValue);
  const auto file = File::create((bytes + kPage - 1) / kPage * kPage);
  std::byte* const begin = file ? map(*file, nullptr, PROT_READ | PROT_WRITE) : nullptr;
  if (begin == nullptr) return told(cudaErrorMemoryAllocation);
  put({begin, bytes, current_device(), kind, file});
  *memory = begin;
  return cudaSuccess;
}

cudaError_t destroy(void* memory, Kind kind) {
  if (memory == nullptr) return cudaSuccess;
  if (const auto refused = refuse_in_capture(); refused != cudaSuccess) return told(refused);
  const auto range = take(memory, kind);
  if (!range) return told(cudaErrorInvalidValue);
  finish_device(range->device);
  munmap(range->begin, range->file->bytes());
  return cudaSuccess;
}

/// How another process finds an allocation. The inode tells that it is still the same one.
struct IpcHandle {
  pid_t process;
  int fd;
  std::uint64_t bytes;
  ino_t inode;
};
static_assert(sizeof(IpcHandle) <= sizeof(cudaIpcMemHandle_t));

ino_t inode_of(int fd) {
  struct stat facts {};
  return fstat(fd, &facts) == 0 ? facts.st_ino : 0;
}

bool on_gpu(Kind kind) { return kind != Kind::pinned; }

CUresult status(cudaError_t said) { return static_cast<CUresult>(said); }

}  // namespace

std::optional<Range> range_at(const void* address) {
  const std::lock_guard lock(mutex);
  auto next = ranges().upper_bound(static_cast<const std::byte*>(address));
  if (next == ranges().begin()) return std::nullopt;
  const Range& range = (--next)->second;
  if (static_cast<const std::byte*>(address) >= range.begin + range.bytes) return std::nullopt;
  return range;
}

}  // namespace gdrx::emulated

using namespace gdrx::emulated;  // NOLINT(google-build-using-namespace): CUDA's names are global

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return create(memory, bytes, Kind::malloced);
}
cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned) {
  return create(memory, bytes, Kind::managed);
}
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) {
  return create(memory, bytes, Kind::pooled);
}
// Also of managed memory; null makes the device's context.
cudaError_t cudaFree(void* memory) {
  (void)current_context();
  const auto range = range_at(memory);
  return destroy(memory, range && range->kind == Kind::managed ? Kind::managed : Kind::malloced);
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t) { return destroy(memory, Kind::pooled); }

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  const std::lock_guard behind_copies(pageable_copies());
  return create(memory, bytes, Kind::pinned);
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return cudaHostAlloc(memory, bytes, 0);
}
cudaError_t cudaFreeHost(void* memory) { return destroy(memory, Kind::pinned); }

// Of all devices of this process, and pinned memory, too.
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = kMemory;
  *free = kMemory - std::min(kMemory, used.load());
  return cudaSuccess;
}

#ifdef __SANITIZE_THREAD__
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace {

// ThreadSanitizer sees nothing of what kernels do, thus nothing of what they wait for: it must not
// see what else a GPU reads and writes.
struct Unseen {
#ifdef __SANITIZE_THREAD__
  Unseen() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unseen() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
#endif
};

void copy(void* to, const void* from, std::size_t bytes) {
  [[maybe_unused]] const Unseen unseen{};
  std::memmove(to, from, bytes);
}
/// Whole pages of zeros are those that nobody has touched: what was in them is given back. False if
/// the memory is none that can be.
bool untouch(void* begin, std::size_t bytes) {
  static const bool known = sysconf(_SC_PAGESIZE) == static_cast<long>(kPage);
  return known && bytes >= 16 * kPage && reinterpret_cast<std::uintptr_t>(begin) % kPage == 0 &&
         madvise(begin, bytes / kPage * kPage, MADV_REMOVE) == 0;
}
void fill(void* memory, int value, std::size_t bytes) {
  [[maybe_unused]] const Unseen unseen{};
  const std::size_t given = value == 0 && untouch(memory, bytes) ? bytes / kPage * kPage : 0;
  std::memset(static_cast<std::byte*>(memory) + given, value, bytes - given);
}

}  // namespace

// Behind the default stream, and refused in a capture, as every call on it.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  if (const auto before = cudaStreamSynchronize(nullptr); before != cudaSuccess) return before;
  copy(to, from, bytes);
  return cudaSuccess;
}
// To memory that is not pinned it has ended when it returns.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  const auto status = told(enqueue(stream, [=] { copy(to, from, bytes); }));
  if (status != cudaSuccess || !range_at(from) || range_at(to)) return status;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  cuStreamIsCapturing(stream, &capture);
  if (capture != CU_STREAM_CAPTURE_STATUS_NONE) return status;
  const std::shared_lock others_copy_too(pageable_copies());
  return cudaStreamSynchronize(stream);
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  if (const auto before = cudaStreamSynchronize(nullptr); before != cudaSuccess) return before;
  fill(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return told(enqueue(stream, [=] { fill(memory, value, bytes); }));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found, const void* address) {
  *found = {};
  found->type = cudaMemoryTypeUnregistered;
  found->device = -1;
  const auto range = range_at(address);
  if (!range) return cudaSuccess;
  found->type = range->kind == Kind::pinned    ? cudaMemoryTypeHost
                : range->kind == Kind::managed ? cudaMemoryTypeManaged
                                               : cudaMemoryTypeDevice;
  found->device = range->device;
  found->devicePointer = const_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  if (const auto refused = refuse_in_capture(); refused != cudaSuccess) return told(refused);
  const auto range = range_at(memory);
  if (!range || range->kind != Kind::malloced) return told(cudaErrorInvalidValue);
  const IpcHandle made{getpid(), range->file->fd(), range->bytes, inode_of(range->file->fd())};
  *handle = {};
  std::memcpy(handle->reserved, &made, sizeof made);
  return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned) {
  if (const auto refused = refuse_in_capture(); refused != cudaSuccess) return told(refused);
  IpcHandle named{};
  std::memcpy(&named, handle.reserved, sizeof named);
  if (named.process == getpid()) return told(cudaErrorDeviceUninitialized);  // as CUDA answers
  const std::string path =
      "/proc/" + std::to_string(named.process) + "/fd/" + std::to_string(named.fd);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return told(cudaErrorInvalidResourceHandle);
  const auto file = std::make_shared<File>(fd, (named.bytes + kPage - 1) / kPage * kPage);
  if (inode_of(fd) != named.inode) return told(cudaErrorInvalidResourceHandle);
  std::byte* const begin = map(*file, nullptr, PROT_READ | PROT_WRITE);
  if (begin == nullptr) return told(cudaErrorMapBufferObjectFailed);
  put({begin, named.bytes, current_device(), Kind::imported, file});
  *memory = begin;
  return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void* memory) { return destroy(memory, Kind::imported); }

CUresult cuMemAlloc(CUdeviceptr* memory, std::size_t bytes) {
  void* made = nullptr;
  const cudaError_t said = cudaMalloc(&made, bytes);
  *memory = reinterpret_cast<CUdeviceptr>(made);
  return status(said);
}
CUresult cuMemFree(CUdeviceptr memory) { return status(cudaFree(pointer(memory))); }
CUresult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  return status(cudaHostAlloc(memory, bytes, flags));
}
CUresult cuMemFreeHost(void* memory) { return status(cudaFreeHost(memory)); }

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
  return status(cudaMemcpy(to, pointer(from), bytes, cudaMemcpyDefault));
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) {
  return status(cudaMemcpy(pointer(to), from, bytes, cudaMemcpyDefault));
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return status(cudaMemcpyAsync(to, pointer(from), bytes, cudaMemcpyDefault, stream));
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return status(cudaMemcpyAsync(pointer(to), from, bytes, cudaMemcpyDefault, stream));
}

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return status(cudaStreamCreateWithFlags(stream, flags));
}
CUresult cuStreamDestroy(CUstream stream) { return status(cudaStreamDestroy(stream)); }
CUresult cuStreamSynchronize(CUstream stream) { return status(cudaStreamSynchronize(stream)); }

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute what, CUdeviceptr address) {
  const auto range = range_at(pointer(address));
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  switch (static_cast<int>(what)) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<CUmemorytype*>(value) =
          on_gpu(range->kind) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(value) = range->device;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      if (range->kind == Kind::mapped) return CUDA_ERROR_INVALID_VALUE;
      return cuDevicePrimaryCtxRetain(static_cast<CUcontext*>(value), range->device);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(value) = range->kind == Kind::managed ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *static_cast<int*>(value) = range->kind == Kind::malloced ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<CUmemoryPool*>(value) =
          range->kind == Kind::pooled ? reinterpret_cast<CUmemoryPool>(&mutex) : nullptr;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<unsigned long long*>(value) = inode_of(range->file->fd());
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* what, void** values,
                                CUdeviceptr address) {
  for (unsigned i = 0; i < count; ++i) {
    // The one that it is asked for in a list; of others it would have to know the size.
    if (what[i] != CU_POINTER_ATTRIBUTE_MEMORY_TYPE) return CUDA_ERROR_NOT_SUPPORTED;
    if (cuPointerGetAttribute(values[i], what[i], address) != CUDA_SUCCESS) {
      std::memset(values[i], 0, sizeof(CUmemorytype));
    }
  }
  return CUDA_SUCCESS;
}
CUresult cuPointerSetAttribute(const void*, CUpointer_attribute, CUdeviceptr) {
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr* begin, std::size_t* bytes, CUdeviceptr address) {
  const auto range = range_at(pointer(address));
  if (!range) return CUDA_ERROR_NOT_FOUND;
  if (begin != nullptr) *begin = reinterpret_cast<CUdeviceptr>(range->begin);
  if (bytes != nullptr) *bytes = range->bytes;
  return CUDA_SUCCESS;
}

// A memfd instead of a dma-buf: the simulated NICs look at its size alone.
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, std::size_t bytes,
                                       CUmemRangeHandleType, unsigned long long) {
  const auto range = range_at(pointer(address));
  if (!range || !on_gpu(range->kind)) return CUDA_ERROR_INVALID_VALUE;
  const auto* begin = static_cast<const std::byte*>(pointer(address));
  if (begin + bytes > range->begin + range->file->bytes()) return CUDA_ERROR_INVALID_VALUE;
  const int fd = fcntl(range->file->fd(), F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(handle) = fd;
  return CUDA_SUCCESS;
}
CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget,
                                    CUflushGPUDirectRDMAWritesScope) {
  return CUDA_SUCCESS;
}
