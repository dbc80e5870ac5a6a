// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/cuda_driver.hpp"

#include <fmt/format.h>

#include "base/system_library.hpp"

namespace gdrx::cuda {
namespace {

constexpr int kAttributeDeviceOrdinal = 9;

void take_memory(SystemLibrary& library, Driver& driver) {
  constexpr auto kNewer = Symbol::Need::newer;
  library.take({
      {driver.pointer_attribute, "cuPointerGetAttribute"},
      {driver.pointer_attributes, "cuPointerGetAttributes"},
      {driver.set_pointer_attribute, "cuPointerSetAttribute"},
      {driver.address_range, "cuMemGetAddressRange_v2"},
      {driver.to_host, "cuMemcpyDtoH_v2"},
      {driver.to_device, "cuMemcpyHtoD_v2"},
      {driver.to_host_async, "cuMemcpyDtoHAsync_v2"},
      {driver.to_device_async, "cuMemcpyHtoDAsync_v2"},
      {driver.allocate_host, "cuMemHostAlloc"},
      {driver.free_host, "cuMemFreeHost"},
      {driver.allocate, "cuMemAlloc_v2"},
      {driver.free, "cuMemFree_v2"},
      {driver.range_handle, "cuMemGetHandleForAddressRange", kNewer},               // CUDA 11.7
      {driver.flush_writes, "cuFlushGPUDirectRDMAWrites", kNewer},                  // CUDA 11.3
      {driver.is_capturing, "cuStreamIsCapturing", kNewer},                         // CUDA 10.0
      {driver.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", kNewer},  // CUDA 10.1
  });
}

void take_devices(SystemLibrary& library, Driver& driver) {
  library.take({
      {driver.init, "cuInit"},
      {driver.push, "cuCtxPushCurrent_v2"},
      {driver.pop, "cuCtxPopCurrent_v2"},
      {driver.context_id, "cuCtxGetId", Symbol::Need::newer},  // CUDA 12.0
      {driver.create_stream, "cuStreamCreate"},
      {driver.destroy_stream, "cuStreamDestroy_v2"},
      {driver.synchronize, "cuStreamSynchronize"},
      {driver.count, "cuDeviceGetCount"},
      {driver.device, "cuDeviceGet"},
      {driver.device_name, "cuDeviceGetName"},
      {driver.device_attribute, "cuDeviceGetAttribute"},
      {driver.retain, "cuDevicePrimaryCtxRetain"},
      {driver.release, "cuDevicePrimaryCtxRelease_v2"},
      {driver.error_text, "cuGetErrorString"},
  });
}

Driver load_driver() {
  Driver driver;
  SystemLibrary library = SystemLibrary::open({"libcuda.so.1"}, "no NVIDIA driver on this machine");
  library.keep();  // other libraries of the process hold it too, and it cannot be unloaded
  take_devices(library, driver);
  take_memory(library, driver);
  if (!library.whole()) {
    driver.missing = library.error().what;
  } else if (driver.init(0) != 0) {
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
