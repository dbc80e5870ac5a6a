// SPDX-License-Identifier: Apache-2.0
// The CUDA driver as `gdrx perf` and the proofs of `gdrx doctor` need it: loaded when asked, never
// linked, so that one binary serves hosts with and without GPUs. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::perf::cuda {

using Status = int;
using Address = unsigned long long;  // of GPU memory

/// Meaning and arguments are those of the cu functions of the driver's stable ABI.
struct Driver {
  Status (*init)(unsigned) = nullptr;
  Status (*count)(int*) = nullptr;
  Status (*attribute)(int*, int, int) = nullptr;
  Status (*bus)(char*, int, int) = nullptr;
  Status (*device_name)(char*, int, int) = nullptr;
  Status (*retain)(void**, int) = nullptr;
  Status (*release)(int) = nullptr;
  Status (*push)(void*) = nullptr;
  Status (*pop)(void**) = nullptr;
  Status (*allocate)(Address*, std::size_t) = nullptr;
  Status (*free)(Address) = nullptr;
  Status (*to_host)(void*, Address, std::size_t) = nullptr;
  Status (*to_device)(Address, const void*, std::size_t) = nullptr;
  Status (*fill32)(Address, unsigned, std::size_t) = nullptr;
  Status (*synchronize)() = nullptr;
  Status (*set_pointer_attribute)(const void*, int, Address) = nullptr;
  Status (*can_access)(int*, int, int) = nullptr;
  Status (*enable_peer)(void*, unsigned) = nullptr;
  Status (*p2p_attribute)(int*, int, int, int) = nullptr;
  Status (*copy_peer)(Address, void*, Address, void*, std::size_t, void*) = nullptr;
  Status (*stream_create)(void**, unsigned) = nullptr;
  Status (*stream_destroy)(void*) = nullptr;
  Status (*event_create)(void**, unsigned) = nullptr;
  Status (*event_destroy)(void*) = nullptr;
  Status (*event_record)(void*, void*) = nullptr;
  Status (*event_query)(void*) = nullptr;
  Status (*event_elapsed)(float*, void*, void*) = nullptr;
  Status (*module_load)(void**, const void*) = nullptr;
  Status (*module_unload)(void*) = nullptr;
  Status (*module_function)(void**, void*, const char*) = nullptr;
  Status (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**) = nullptr;
  Status (*error_name)(Status, const char**) = nullptr;
  /// Absent before CUDA 11.7.
  Status (*range_handle)(void*, Address, std::size_t, int, unsigned long long) = nullptr;
};

/// Once for the process. Errc::unsupported where there is no driver or no GPU.
Result<const Driver*> driver();
/// "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"
tl::unexpected<Error> failed(const Driver& driver, const char* call, Status status);

/// A GPU's primary context, held.
class Device {
 public:
  /// `ordinal` counts the GPUs that this process sees.
  static Result<std::shared_ptr<Device>> open(int ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  const Driver& cuda() const noexcept { return cuda_; }
  void* context() const noexcept { return context_; }
  int ordinal() const noexcept { return ordinal_; }
  const std::string& bus() const noexcept { return bus_; }  // as sysfs writes it
  int attribute(int number) const;                          // 0 where there is none

 private:
  Device(const Driver& cuda, int ordinal) : cuda_(cuda), ordinal_(ordinal) {}
  const Driver& cuda_;
  int ordinal_;
  void* context_ = nullptr;
  std::string bus_;
};
Result<std::vector<std::shared_ptr<Device>>> open_all();

/// The device's context is current for a scope.
class Current {
 public:
  explicit Current(const Device& device);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Driver& cuda_;
  bool pushed_;
};

/// Memory of a GPU, freed with the object.
class Memory {
 public:
  static Result<std::unique_ptr<Memory>> create(std::shared_ptr<Device> device, std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Address address() const noexcept { return address_; }
  std::size_t size() const noexcept { return bytes_; }
  const Device& device() const noexcept { return *device_; }
  Result<void> write(std::size_t offset, std::span<const std::byte> from) const;
  Result<void> read(std::size_t offset, std::span<std::byte> into) const;
  /// A dma-buf descriptor of all of it, to be closed by the caller.
  Result<int> export_dmabuf() const;

 private:
  Memory(std::shared_ptr<Device> device, Address address, std::size_t bytes)
      : device_(std::move(device)), address_(address), bytes_(bytes) {}
  std::shared_ptr<Device> device_;
  Address address_;
  std::size_t bytes_;
};

}  // namespace gdrx::perf::cuda
