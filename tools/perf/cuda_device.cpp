// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/cuda_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/system_library.hpp"

namespace gdrx::perf::cuda {
namespace {

// Numbers of the driver's documented ABI.
constexpr int kDmabufHandle = 1;
constexpr int kSyncMemops = 6;

void take_memory(SystemLibrary& library, Driver& cuda) {
  library.take({
      {cuda.allocate, "cuMemAlloc_v2"},
      {cuda.free, "cuMemFree_v2"},
      {cuda.to_host, "cuMemcpyDtoH_v2"},
      {cuda.to_device, "cuMemcpyHtoD_v2"},
      {cuda.fill32, "cuMemsetD32_v2"},
      {cuda.synchronize, "cuCtxSynchronize"},
      {cuda.set_pointer_attribute, "cuPointerSetAttribute"},
      {cuda.can_access, "cuDeviceCanAccessPeer"},
      {cuda.enable_peer, "cuCtxEnablePeerAccess"},
      {cuda.p2p_attribute, "cuDeviceGetP2PAttribute"},
      {cuda.copy_peer, "cuMemcpyPeerAsync"},
      {cuda.range_handle, "cuMemGetHandleForAddressRange", Symbol::Need::newer},
  });
}

void take_work(SystemLibrary& library, Driver& cuda) {
  library.take({
      {cuda.stream_create, "cuStreamCreate"},
      {cuda.stream_destroy, "cuStreamDestroy_v2"},
      {cuda.event_create, "cuEventCreate"},
      {cuda.event_destroy, "cuEventDestroy_v2"},
      {cuda.event_record, "cuEventRecord"},
      {cuda.event_query, "cuEventQuery"},
      {cuda.event_elapsed, "cuEventElapsedTime"},
      {cuda.module_load, "cuModuleLoadData"},
      {cuda.module_unload, "cuModuleUnload"},
      {cuda.module_function, "cuModuleGetFunction"},
      {cuda.launch, "cuLaunchKernel"},
  });
}

Result<Driver> load_driver() {
  SystemLibrary library = SystemLibrary::open({"libcuda.so.1"}, "no NVIDIA driver here");
  library.keep();  // it cannot be unloaded
  Driver cuda;
  library.take({
      {cuda.init, "cuInit"},
      {cuda.count, "cuDeviceGetCount"},
      {cuda.attribute, "cuDeviceGetAttribute"},
      {cuda.bus, "cuDeviceGetPCIBusId"},
      {cuda.device_name, "cuDeviceGetName"},
      {cuda.retain, "cuDevicePrimaryCtxRetain"},
      {cuda.release, "cuDevicePrimaryCtxRelease_v2"},
      {cuda.push, "cuCtxPushCurrent_v2"},
      {cuda.pop, "cuCtxPopCurrent_v2"},
      {cuda.error_name, "cuGetErrorName"},
  });
  take_memory(library, cuda);
  take_work(library, cuda);
  if (!library.whole()) return tl::unexpected(library.error());
  if (const Status status = cuda.init(0); status != 0) return failed(cuda, "cuInit", status);
  return cuda;
}

}  // namespace

Result<const Driver*> driver() {
  static const Result<Driver> loaded = load_driver();
  if (!loaded) return tl::unexpected(loaded.error());
  return &*loaded;
}

tl::unexpected<Error> failed(const Driver& driver, const char* call, Status status) {
  const char* name = nullptr;
  if (driver.error_name(status, &name) != 0 || name == nullptr) name = "unknown error";
  return fail(Errc::system, fmt::format("{}: {} ({})", call, name, status));
}

Result<std::shared_ptr<Device>> Device::open(int ordinal) {
  const Driver& cuda = *GDRX_TRY(driver());
  std::shared_ptr<Device> device(new Device(cuda, ordinal));
  std::array<char, 32> bus{};
  if (const Status status = cuda.bus(bus.data(), bus.size(), ordinal); status != 0) {
    return failed(cuda, "cuDeviceGetPCIBusId", status);
  }
  device->bus_ = bus.data();
  std::transform(device->bus_.begin(), device->bus_.end(), device->bus_.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (const Status status = cuda.retain(&device->context_, ordinal); status != 0) {
    device->context_ = nullptr;
    return failed(cuda, "cuDevicePrimaryCtxRetain", status);
  }
  return device;
}

Device::~Device() {
  if (context_ != nullptr) cuda_.release(ordinal_);
}

int Device::attribute(int number) const {
  int value = 0;
  return cuda_.attribute(&value, number, ordinal_) == 0 ? value : 0;
}

Result<std::vector<std::shared_ptr<Device>>> open_all() {
  const Driver& cuda = *GDRX_TRY(driver());
  int count = 0;
  if (const Status status = cuda.count(&count); status != 0) {
    return failed(cuda, "cuDeviceGetCount", status);
  }
  std::vector<std::shared_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) devices.push_back(GDRX_TRY(Device::open(i)));
  return devices;
}

Current::Current(const Device& device)
    : cuda_(device.cuda()), pushed_(cuda_.push(device.context()) == 0) {}

Current::~Current() {
  void* ignored = nullptr;
  if (pushed_) cuda_.pop(&ignored);
}

Result<std::unique_ptr<Memory>> Memory::create(std::shared_ptr<Device> device, std::size_t bytes) {
  const Driver& cuda = device->cuda();
  const Current current(*device);
  Address address = 0;
  if (const Status status = cuda.allocate(&address, bytes); status != 0) {
    return failed(cuda, "cuMemAlloc", status);
  }
  // Copies on it are then complete when they return, also for a NIC that reads it.
  const unsigned on = 1;
  (void)cuda.set_pointer_attribute(&on, kSyncMemops, address);
  return std::unique_ptr<Memory>(new Memory(std::move(device), address, bytes));
}

Memory::~Memory() {
  const Current current(*device_);
  device_->cuda().free(address_);
}

Result<void> Memory::write(std::size_t offset, std::span<const std::byte> from) const {
  const Current current(*device_);
  const Driver& cuda = device_->cuda();
  const Status status = cuda.to_device(address_ + offset, from.data(), from.size());
  if (status != 0) return failed(cuda, "cuMemcpyHtoD", status);
  return {};
}

Result<void> Memory::read(std::size_t offset, std::span<std::byte> into) const {
  const Current current(*device_);
  const Driver& cuda = device_->cuda();
  const Status status = cuda.to_host(into.data(), address_ + offset, into.size());
  if (status != 0) return failed(cuda, "cuMemcpyDtoH", status);
  return {};
}

Result<int> Memory::export_dmabuf() const {
  const Driver& cuda = device_->cuda();
  if (cuda.range_handle == nullptr) {
    return fail(Errc::unsupported, "the driver has no cuMemGetHandleForAddressRange");
  }
  const Current current(*device_);
  int fd = -1;
  const Status status = cuda.range_handle(&fd, address_, bytes_, kDmabufHandle, 0);
  if (status != 0) return failed(cuda, "cuMemGetHandleForAddressRange", status);
  return fd;
}

}  // namespace gdrx::perf::cuda
