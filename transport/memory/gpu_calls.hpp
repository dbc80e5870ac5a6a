// SPDX-License-Identifier: Apache-2.0
// What a fabric needs of GPUs to let a NIC reach their memory, as values: the CUDA driver's, or a
// test's.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx::cuda {

/// A part of a dma-buf. Closed with the object; a registration made of it stays.
class DmaBuf {
 public:
  DmaBuf(int fd, Bytes offset) : fd_(fd), offset_(offset) {}
  DmaBuf(DmaBuf&& other) noexcept : fd_(std::exchange(other.fd_, -1)), offset_(other.offset_) {}
  DmaBuf& operator=(DmaBuf&&) = delete;
  ~DmaBuf() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const noexcept { return fd_; }
  Bytes offset() const noexcept { return offset_; }  // of the memory's first byte

 private:
  int fd_;
  Bytes offset_;
};

/// Pinned host memory; lives as long as `owner`.
struct HostMemory {
  std::span<std::byte> bytes;
  std::shared_ptr<void> owner;
};

struct GpuFacts {
  int ordinal = 0;
  std::string name;
  std::string pci_folder;  // in sysfs, links resolved; empty: not known
  bool rdma = false;       // third parties may reach its memory at all
  bool dma_buf = false;    // and by dma-buf
  bool ordered =
      false;  // what a NIC wrote before its completion is seen by kernels without a flush
};

/// Any thread, blocking. `device` is an address on a GPU.
struct GpuCalls {
  std::function<MemoryKind(const void*)> kind_of;
  std::function<Result<GpuFacts>(const void* device)> facts_of;
  std::function<Result<DmaBuf>(std::span<std::byte> device)> export_dma_buf;
  /// Synchronous copies of this memory complete before they return, as NICs need it.
  std::function<Result<void>(const void* device)> keep_in_order;
  /// Host memory as fast as the GPU of `device` can reach it.
  std::function<Result<HostMemory>(std::size_t bytes, const void* device)> allocate_host;
  std::function<Result<void>(std::byte* host, const std::byte* device, std::size_t)> to_host;
  std::function<Result<void>(std::byte* device, const std::byte* host, std::size_t)> to_device;
  /// Makes what NICs wrote visible, without a NIC's help. Errc::unsupported where that is not.
  std::function<Result<void>(const void* device)> flush_writes;
};

/// The driver's. Loads it when a call other than kind_of is made.
const GpuCalls& gpu_calls();

}  // namespace gdrx::cuda
