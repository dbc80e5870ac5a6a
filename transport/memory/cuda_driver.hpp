// SPDX-License-Identifier: Apache-2.0
// The part of CUDA's driver that gdrx calls, loaded at run time: nothing needs CUDA to build or to
// start. Only for the files of this folder.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "gdrx/result.hpp"

namespace gdrx::cuda {

// The driver's own types and values, from its documented ABI: stable since CUDA 4.
using Status = int;
using Context = void*;
using Stream = void*;
using DevicePointer = unsigned long long;

struct Driver {
  Status (*init)(unsigned) = nullptr;
  Status (*pointer_attribute)(void*, int, DevicePointer) = nullptr;
  Status (*pointer_attributes)(unsigned, int*, void**, DevicePointer) = nullptr;
  Status (*set_pointer_attribute)(const void*, int, DevicePointer) = nullptr;
  Status (*address_range)(DevicePointer*, std::size_t*, DevicePointer) = nullptr;
  Status (*push)(Context) = nullptr;
  Status (*pop)(Context*) = nullptr;
  Status (*to_host)(void*, DevicePointer, std::size_t) = nullptr;
  Status (*to_device)(DevicePointer, const void*, std::size_t) = nullptr;
  Status (*to_host_async)(void*, DevicePointer, std::size_t, Stream) = nullptr;
  Status (*to_device_async)(DevicePointer, const void*, std::size_t, Stream) = nullptr;
  Status (*create_stream)(Stream*, unsigned) = nullptr;
  Status (*destroy_stream)(Stream) = nullptr;
  Status (*synchronize)(Stream) = nullptr;
  Status (*allocate_host)(void**, std::size_t, unsigned) = nullptr;
  Status (*free_host)(void*) = nullptr;
  Status (*count)(int*) = nullptr;
  Status (*device)(int*, int) = nullptr;
  Status (*device_name)(char*, int, int) = nullptr;
  Status (*device_attribute)(int*, int, int) = nullptr;
  Status (*retain)(Context*, int) = nullptr;
  Status (*release)(int) = nullptr;
  Status (*allocate)(DevicePointer*, std::size_t) = nullptr;
  Status (*free)(DevicePointer) = nullptr;
  Status (*error_text)(Status, const char**) = nullptr;
  // Null where the driver is older than they are.
  Status (*range_handle)(void*, DevicePointer, std::size_t, int, unsigned long long) = nullptr;
  Status (*flush_writes)(int, int) = nullptr;
  Status (*is_capturing)(Stream, int*) = nullptr;
  Status (*exchange_capture_mode)(int*) = nullptr;
  Status (*context_id)(Context, unsigned long long*) = nullptr;
  std::string missing;  // why it cannot be used; empty if it can
};

/// Loaded and initialised at the first call.
const Driver& driver();

tl::unexpected<Error> failed(const char* call, Status status);

inline DevicePointer address(const void* pointer) {
  return static_cast<DevicePointer>(reinterpret_cast<std::uintptr_t>(pointer));
}

/// For a scope: what this thread asks of the driver is not refused while another thread captures a
/// stream, and spoils no capture. Our calls end in any thread, and touch streams of ours alone.
class AnyCapture {
 public:
  AnyCapture() noexcept { exchange(); }
  ~AnyCapture() { exchange(); }
  AnyCapture(const AnyCapture&) = delete;
  AnyCapture& operator=(const AnyCapture&) = delete;

 private:
  void exchange() noexcept {
    if (driver().exchange_capture_mode != nullptr) driver().exchange_capture_mode(&mode_);
  }
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED; then the thread's own
};

/// Makes a context current for a scope, beside any capture: the thread may have none.
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
  AnyCapture beside_;
  bool pushed_;
};

/// A device's primary context, held: what was made in it outlives its other holders.
class PrimaryContext {
 public:
  PrimaryContext() = default;
  static Result<PrimaryContext> retain(int ordinal);
  /// Of the device that the pointer's memory is on. Not the context it was allocated in: memory of
  /// cuMemCreate has none.
  static Result<PrimaryContext> of(const void* pointer);
  PrimaryContext(PrimaryContext&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), device_(other.device_) {}
  PrimaryContext& operator=(PrimaryContext&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(device_, other.device_);
    return *this;
  }
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;
  ~PrimaryContext();
  Context raw() const noexcept { return context_; }
  int device() const noexcept { return device_; }

 private:
  Context context_ = nullptr;
  int device_ = 0;
};

/// The ordinal of the device that a pointer's memory is on.
Result<int> ordinal_of(const void* pointer);

}  // namespace gdrx::cuda
