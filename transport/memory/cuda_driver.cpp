// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/cuda_driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace gdrx::cuda {
namespace {

constexpr int kAttributeDeviceOrdinal = 9;

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

template <class Function>
void load(void* library, const char* name, Function& function, std::string& missing) {
  find(library, name, function);
  if (function == nullptr) missing = fmt::format("libcuda.so.1 has no {}", name);
}

void load_memory(void* library, Driver& driver) {
  std::string& missing = driver.missing;
  load(library, "cuPointerGetAttribute", driver.pointer_attribute, missing);
  load(library, "cuPointerGetAttributes", driver.pointer_attributes, missing);
  load(library, "cuPointerSetAttribute", driver.set_pointer_attribute, missing);
  load(library, "cuMemGetAddressRange_v2", driver.address_range, missing);
  load(library, "cuMemcpyDtoH_v2", driver.to_host, missing);
  load(library, "cuMemcpyHtoD_v2", driver.to_device, missing);
  load(library, "cuMemcpyDtoHAsync_v2", driver.to_host_async, missing);
  load(library, "cuMemcpyHtoDAsync_v2", driver.to_device_async, missing);
  load(library, "cuMemHostAlloc", driver.allocate_host, missing);
  load(library, "cuMemFreeHost", driver.free_host, missing);
  load(library, "cuMemAlloc_v2", driver.allocate, missing);
  load(library, "cuMemFree_v2", driver.free, missing);
  find(library, "cuMemGetHandleForAddressRange", driver.range_handle);               // CUDA 11.7
  find(library, "cuFlushGPUDirectRDMAWrites", driver.flush_writes);                  // CUDA 11.3
  find(library, "cuStreamIsCapturing", driver.is_capturing);                         // CUDA 10.0
  find(library, "cuThreadExchangeStreamCaptureMode", driver.exchange_capture_mode);  // CUDA 10.1
}

void load_devices(void* library, Driver& driver) {
  std::string& missing = driver.missing;
  load(library, "cuInit", driver.init, missing);
  load(library, "cuCtxPushCurrent_v2", driver.push, missing);
  load(library, "cuCtxPopCurrent_v2", driver.pop, missing);
  load(library, "cuStreamCreate", driver.create_stream, missing);
  load(library, "cuStreamDestroy_v2", driver.destroy_stream, missing);
  load(library, "cuStreamSynchronize", driver.synchronize, missing);
  load(library, "cuDeviceGetCount", driver.count, missing);
  load(library, "cuDeviceGet", driver.device, missing);
  load(library, "cuDeviceGetName", driver.device_name, missing);
  load(library, "cuDeviceGetAttribute", driver.device_attribute, missing);
  load(library, "cuDevicePrimaryCtxRetain", driver.retain, missing);
  load(library, "cuDevicePrimaryCtxRelease_v2", driver.release, missing);
  load(library, "cuGetErrorString", driver.error_text, missing);
}

Driver load_driver() {
  Driver driver;
  // Never closed: other libraries of the process hold it too, and it does not like to be unloaded.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    driver.missing = "libcuda.so.1 is not installed: no NVIDIA driver on this machine";
    return driver;
  }
  load_devices(library, driver);
  load_memory(library, driver);
  if (driver.missing.empty() && driver.init(0) != 0) {
    driver.missing = "cuInit failed: no usable GPU in this process";
  }
  return driver;
}

}  // namespace

const Driver& driver() {
  static const Driver loaded = load_driver();
  return loaded;
}

tl::unexpected<Error> failed(const char* call, Status status) {
  const char* text = nullptr;
  if (driver().error_text(status, &text) != 0 || text == nullptr) text = "unknown error";
  return fail(Errc::system, fmt::format("{}: {} ({})", call, text, status));
}

Result<int> ordinal_of(const void* pointer) {
  if (!driver().missing.empty()) return fail(Errc::unsupported, driver().missing);
  int ordinal = 0;
  const Status status =
      driver().pointer_attribute(&ordinal, kAttributeDeviceOrdinal, address(pointer));
  if (status != 0) return failed("cuPointerGetAttribute", status);
  return ordinal;
}

Result<PrimaryContext> PrimaryContext::retain(int ordinal) {
  if (!driver().missing.empty()) return fail(Errc::unsupported, driver().missing);
  const AnyCapture beside;
  PrimaryContext made;
  int device = 0;
  if (const Status status = driver().device(&device, ordinal); status != 0) {
    return failed("cuDeviceGet", status);
  }
  if (const Status status = driver().retain(&made.context_, device); status != 0) {
    return failed("cuDevicePrimaryCtxRetain", status);
  }
  made.device_ = device;
  return made;
}

Result<PrimaryContext> PrimaryContext::of(const void* pointer) {
  return retain(GDRX_TRY(ordinal_of(pointer)));
}

PrimaryContext::~PrimaryContext() {
  if (context_ == nullptr) return;
  const AnyCapture beside;
  driver().release(device_);
}

}  // namespace gdrx::cuda
