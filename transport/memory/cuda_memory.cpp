// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/cuda_memory.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <atomic>
#include <utility>

namespace gdrx::cuda {
namespace {

// The driver's own types and values, from its documented ABI: stable since CUDA 4.
using Status = int;
using Context = void*;
using DevicePointer = unsigned long long;
constexpr int kAttributeContext = 1;
constexpr int kAttributeMemoryType = 2;
constexpr int kAttributeDeviceOrdinal = 9;
constexpr unsigned kMemoryTypeDevice = 2;
constexpr Status kCaptureUnsupported = 900;

struct Driver {
  Status (*init)(unsigned) = nullptr;
  Status (*pointer_attribute)(void*, int, DevicePointer) = nullptr;
  Status (*push)(Context) = nullptr;
  Status (*pop)(Context*) = nullptr;
  Status (*to_host)(void*, DevicePointer, std::size_t) = nullptr;
  Status (*to_device)(DevicePointer, const void*, std::size_t) = nullptr;
  Status (*allocate_host)(void**, std::size_t, unsigned) = nullptr;
  Status (*free_host)(void*) = nullptr;
  Status (*count)(int*) = nullptr;
  Status (*retain)(Context*, int) = nullptr;
  Status (*release)(int) = nullptr;
  Status (*allocate)(DevicePointer*, std::size_t) = nullptr;
  Status (*free)(DevicePointer) = nullptr;
  Status (*stream_synchronize)(void*) = nullptr;
  Status (*error_text)(Status, const char**) = nullptr;
  std::string missing;
};

template <class Function>
void load(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) missing = fmt::format("libcuda.so.1 has no {}", name);
}

Driver load_driver() {
  Driver driver;
  // Never closed: other libraries of the process hold it too, and it does not like to be unloaded.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    driver.missing = "libcuda.so.1 is not installed: no NVIDIA driver on this machine";
    return driver;
  }
  load(library, "cuInit", driver.init, driver.missing);
  load(library, "cuPointerGetAttribute", driver.pointer_attribute, driver.missing);
  load(library, "cuCtxPushCurrent_v2", driver.push, driver.missing);
  load(library, "cuCtxPopCurrent_v2", driver.pop, driver.missing);
  load(library, "cuMemcpyDtoH_v2", driver.to_host, driver.missing);
  load(library, "cuMemcpyHtoD_v2", driver.to_device, driver.missing);
  load(library, "cuMemHostAlloc", driver.allocate_host, driver.missing);
  load(library, "cuMemFreeHost", driver.free_host, driver.missing);
  load(library, "cuDeviceGetCount", driver.count, driver.missing);
  load(library, "cuDevicePrimaryCtxRetain", driver.retain, driver.missing);
  load(library, "cuDevicePrimaryCtxRelease_v2", driver.release, driver.missing);
  load(library, "cuMemAlloc_v2", driver.allocate, driver.missing);
  load(library, "cuMemFree_v2", driver.free, driver.missing);
  load(library, "cuStreamSynchronize", driver.stream_synchronize, driver.missing);
  load(library, "cuGetErrorString", driver.error_text, driver.missing);
  if (driver.missing.empty() && driver.init(0) != 0) {
    driver.missing = "cuInit failed: no usable GPU in this process";
  }
  return driver;
}

const Driver& driver() {
  static const Driver loaded = load_driver();
  return loaded;
}

tl::unexpected<Error> failed(const char* call, Status status) {
  const char* text = nullptr;
  if (driver().error_text(status, &text) != 0 || text == nullptr) text = "unknown error";
  return fail(Errc::system, fmt::format("{}: {} ({})", call, text, status));
}

DevicePointer address(const void* pointer) {
  return static_cast<DevicePointer>(reinterpret_cast<std::uintptr_t>(pointer));
}

/// Makes the context of a device pointer current for a scope: the thread may have none.
class Current {
 public:
  explicit Current(Context context) : pushed_(driver().push(context) == 0) {}
  ~Current() {
    Context ignored = nullptr;
    if (pushed_) driver().pop(&ignored);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  bool ok() const { return pushed_; }

 private:
  bool pushed_;
};

Result<Context> context_of(const void* pointer) {
  if (!missing().empty()) return fail(Errc::unsupported, missing());
  Context context = nullptr;
  const Status status = driver().pointer_attribute(&context, kAttributeContext, address(pointer));
  if (status != 0) return failed("cuPointerGetAttribute", status);
  return context;
}

}  // namespace

const std::string& missing() { return driver().missing; }

namespace {

// Whether anybody has loaded the driver. Asked of the linker again only after it has loaded
// something: calls on host memory must not pay for GPUs that nobody uses.
bool driver_in_process() noexcept {
  static std::atomic<unsigned long long> seen{0};
  static std::atomic<bool> found{false};
  if (found.load(std::memory_order_relaxed)) return true;
  unsigned long long loads = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;
      },
      &loads);
  if (loads == seen.load(std::memory_order_relaxed)) return false;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library != nullptr) dlclose(library);
  // Not before the answer is known: another thread believes it.
  if (library == nullptr) seen.store(loads, std::memory_order_relaxed);
  if (library != nullptr) found.store(true, std::memory_order_relaxed);
  return library != nullptr;
}

}  // namespace

MemoryKind kind_of(const void* pointer) noexcept {
  if (pointer == nullptr || !driver_in_process()) return MemoryKind::host;
  if (!missing().empty()) return MemoryKind::host;
  unsigned type = 0;
  const Status status = driver().pointer_attribute(&type, kAttributeMemoryType, address(pointer));
  return status == 0 && type == kMemoryTypeDevice ? MemoryKind::cuda : MemoryKind::host;
}

Result<PinnedBuffer> PinnedBuffer::create(std::size_t bytes, const void* device_pointer) {
  if (!missing().empty()) return fail(Errc::unsupported, missing());
  int ordinal = 0;
  const Status found =
      driver().pointer_attribute(&ordinal, kAttributeDeviceOrdinal, address(device_pointer));
  if (found != 0) return failed("cuPointerGetAttribute", found);
  PinnedBuffer buffer;
  // The caller may give up his context before this buffer is gone, and its memory with it.
  const Status retained = driver().retain(&buffer.context_, ordinal);
  if (retained != 0) return failed("cuDevicePrimaryCtxRetain", retained);
  buffer.device_ = ordinal;
  const Current current(buffer.context_);
  if (!current.ok()) return fail(Errc::system, "cuCtxPushCurrent");
  constexpr unsigned kPortable = 1;  // pinned for every context
  void* data = nullptr;
  const Status status = driver().allocate_host(&data, bytes, kPortable);
  if (status != 0) return failed("cuMemHostAlloc", status);
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.size_ = bytes;
  return buffer;
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept { *this = std::move(other); }

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(context_, other.context_);
  std::swap(device_, other.device_);
  return *this;
}

PinnedBuffer::~PinnedBuffer() {
  if (context_ == nullptr) return;
  if (data_ != nullptr) {
    const Current current(context_);
    driver().free_host(data_);
  }
  driver().release(device_);
}

Result<DeviceBuffer> DeviceBuffer::create(std::size_t bytes, int ordinal) {
  if (!missing().empty()) return fail(Errc::unsupported, missing());
  int count = 0;
  if (const Status status = driver().count(&count); status != 0 || count == 0) {
    return fail(Errc::unsupported, "this process sees no GPU (is CUDA_VISIBLE_DEVICES empty?)");
  }
  DeviceBuffer buffer;
  buffer.device_ = ordinal % count;
  if (const Status status = driver().retain(&buffer.context_, buffer.device_); status != 0) {
    return failed("cuDevicePrimaryCtxRetain", status);
  }
  const Current current(buffer.context_);
  DevicePointer address = 0;
  if (const Status status = driver().allocate(&address, bytes); status != 0) {
    return failed("cuMemAlloc", status);
  }
  buffer.data_ = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  return buffer;
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(context_, other.context_);
  std::swap(device_, other.device_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (context_ == nullptr) return;
  if (data_ != nullptr) {
    const Current current(context_);
    driver().free(address(data_));
  }
  driver().release(device_);
}

Result<void> copy_to_host(std::byte* host, const std::byte* device, std::size_t bytes) {
  const Current current(GDRX_TRY(context_of(device)));
  const Status status = driver().to_host(host, address(device), bytes);
  if (status != 0) return failed("cuMemcpyDtoH", status);
  return {};
}

Result<void> copy_to_device(std::byte* device, const std::byte* host, std::size_t bytes) {
  const Current current(GDRX_TRY(context_of(device)));
  const Status status = driver().to_device(address(device), host, bytes);
  if (status != 0) return failed("cuMemcpyHtoD", status);
  return {};
}

Result<void> synchronize(void* stream) {
  if (!missing().empty()) return fail(Errc::unsupported, missing());
  const Status status = driver().stream_synchronize(stream);
  if (status == kCaptureUnsupported) {
    return fail(Errc::unsupported,
                "the stream is being captured, and this call goes through host memory");
  }
  if (status != 0) return failed("cuStreamSynchronize", status);
  return {};
}

}  // namespace gdrx::cuda
