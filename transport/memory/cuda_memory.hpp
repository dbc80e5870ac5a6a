// SPDX-License-Identifier: Apache-2.0
// What memory a pointer is, memory of the GPU and pinned memory, and copies between them. The
// driver is loaded at run time, so that nothing here needs CUDA to build or to start.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "gdrx/result.hpp"
#include "gdrx/types.hpp"
#include "transport/memory/cuda_driver.hpp"

namespace gdrx::cuda {

/// Empty if the CUDA driver is usable in this process, else why not, for a person.
const std::string& missing();

/// Whether anybody in this process has loaded the driver: else no pointer can be the GPU's.
bool is_loaded() noexcept;

/// Host for everything that the driver does not know, and where nobody in this process has loaded a
/// driver: then no pointer can be the GPU's. Does not load it.
MemoryKind kind_of(const void* pointer) noexcept;

/// Host memory that the GPU copies to and from at full speed. The process keeps it for later ones:
/// to free it would wait for every kernel of the GPU.
class PinnedBuffer {
 public:
  /// Of pinned_size(bytes). CUDA may let this wait for a thread
  /// that copies to memory which is not pinned, and so for that one's stream.
  static Result<PinnedBuffer> create(std::size_t bytes, const void* device_pointer);
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer();
  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  struct Idle;
  PinnedBuffer() = default;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  PrimaryContext context_;  // the caller may give up his, and the memory with it
};

/// GPU memory of a device, in its primary context, which the object holds. Freed with it.
class DeviceBuffer {
 public:
  /// `ordinal` counts the GPUs that this process sees; taken modulo their number.
  static Result<DeviceBuffer> create(std::size_t bytes, int ordinal);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer();
  std::byte* data() const noexcept { return data_; }

 private:
  DeviceBuffer() = default;
  std::byte* data_ = nullptr;
  PrimaryContext context_;
};

/// Blocking, behind what the default stream of the memory's context has to do. Any thread.
Result<void> copy_to_host(std::byte* host, const std::byte* device, std::size_t bytes);
Result<void> copy_to_device(std::byte* device, const std::byte* host, std::size_t bytes);

/// Blocks until a stream has done what was given to it. Errc::unsupported while it is captured, and
/// the capture goes on. Other threads' captures are not disturbed, as by nothing else here.
Result<void> synchronize(void* stream);
/// The same of the default stream of the memory's context.
Result<void> synchronize_default_stream(const void* memory);
/// Blocking, on a stream of its own that waits for no other: a kernel that waits for what is copied
/// may be running. What other streams write is to be there before. Any thread.
Result<void> copy_aside_to_host(std::byte* host, const std::byte* device, std::size_t bytes);
Result<void> copy_aside_to_device(std::byte* device, const std::byte* host, std::size_t bytes);

}  // namespace gdrx::cuda
