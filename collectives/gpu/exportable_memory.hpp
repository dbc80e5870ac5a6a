// SPDX-License-Identifier: Apache-2.0
// GPU memory that is made to be mapped by peers: gdrxGpuMemAlloc's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "collectives/gpu/driver.hpp"

namespace gdrx::gpu {

/// Made by cuMemCreate, with a handle that travels as a file descriptor, and mapped by cuMemMap.
/// Not by cudaMalloc, for the sake of its end:
/// - To cudaFree what a peer has opened by CUDA IPC is undefined, and a rank that leaves without
///   the others (they failed, or are late) cannot know. Of cuMemCreate's the driver counts mappings
///   and handles of all processes: the memory ends with the last. Ranks of one process use its one
///   mapping, so their windows are counted here.
/// - cudaFree waits for all kernels of the GPU, of which some may be waiting for whoever frees;
///   that is why PooledMemory never does. Whether cuMemUnmap waits CUDA leaves open ("synchronous
///   for most use cases"): close_window() comes to it while no rank can launch anything.
class ExportableMemory {
 public:
  /// Of the current device, at least `bytes`: rounded to what the device maps at once, 2 MiB.
  static Result<std::shared_ptr<const ExportableMemory>> create(std::uint64_t bytes);
  /// What begins there, held; null: memory of somebody else's. Any thread.
  static std::shared_ptr<const ExportableMemory> at(CUdeviceptr begin);
  ~ExportableMemory();
  ExportableMemory(const ExportableMemory&) = delete;
  ExportableMemory& operator=(const ExportableMemory&) = delete;
  std::byte* data() const noexcept;

 private:
  explicit ExportableMemory(const DriverApi& driver) : driver_(&driver) {}
  Result<void> map(const CUmemAllocationProp& what, std::uint64_t bytes);

  const DriverApi* driver_;
  int device_ = 0;
  CUdeviceptr begin_ = 0;
  std::uint64_t reserved_ = 0;
  bool mapped_ = false;
};

}  // namespace gdrx::gpu
