// SPDX-License-Identifier: Apache-2.0
// Memory that a NIC is measured with: the host's or a GPU's, and the ways to register it.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tools/perf/cuda_device.hpp"
#include "tools/perf/nic_port.hpp"

namespace gdrx::perf {

enum class Way : std::uint8_t { host, dmabuf, peermem };
std::string_view to_string(Way way);  // "host memory", "dma-buf", "nvidia-peermem"

class Buffer {
 public:
  /// Pages of the host, zeroed.
  static Result<std::unique_ptr<Buffer>> host(std::size_t bytes);
  static Result<std::unique_ptr<Buffer>> gpu(std::shared_ptr<cuda::Device> device,
                                             std::size_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::uint64_t address() const noexcept { return address_; }
  std::size_t size() const noexcept { return bytes_; }
  /// Null for GPU memory.
  std::byte* host_data() const noexcept { return host_; }
  Result<void> write(std::size_t offset, std::span<const std::byte> from) const;
  Result<void> read(std::size_t offset, std::span<std::byte> into) const;
  /// GPU memory by dma-buf or peer memory, host memory as it is. The error's native code is errno.
  Result<std::unique_ptr<verbs::Registration>> register_with(const NicPort& port, Way way) const;

 private:
  Buffer() = default;
  std::uint64_t address_ = 0;
  std::size_t bytes_ = 0;
  std::byte* host_ = nullptr;
  std::unique_ptr<cuda::Memory> gpu_;
};

/// Bytes that differ from place to place and from seed to seed.
std::vector<std::byte> pattern(std::size_t bytes, unsigned seed);

}  // namespace gdrx::perf
