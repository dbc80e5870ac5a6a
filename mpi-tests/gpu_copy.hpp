// SPDX-License-Identifier: Apache-2.0
// A guarded buffer's twin on a GPU, guards included.
#pragma once

#include "mpi-tests/data.hpp"
#include "transport/memory/cuda_memory.hpp"

namespace gdrx::bench {

class GpuCopy {
 public:
  /// On GPU `ordinal` of those that this process sees. `host` outlives it.
  static Result<GpuCopy> create(GuardedBuffer& host, int ordinal) {
    return GpuCopy(host, GDRX_TRY(cuda::DeviceBuffer::create(host.whole().size(), ordinal)));
  }
  /// As host.data().
  std::byte* data() const noexcept { return begin() + (host_->data() - whole().data()); }
  Result<void> upload() const {
    return cuda::copy_to_device(begin(), whole().data(), whole().size());
  }
  Result<void> download() const {
    return cuda::copy_to_host(whole().data(), begin(), whole().size());
  }
  /// What move_to() needs.
  std::size_t room() const noexcept { return whole().size() + kBefore; }
  /// Lies in this memory of somebody else's from now on, data() at the same place of it on every
  /// rank; null: in its own.
  void move_to(std::byte* memory) noexcept {
    const auto odd = reinterpret_cast<std::uintptr_t>(host_->data()) % kPage;
    const auto ahead = static_cast<std::size_t>(host_->data() - whole().data());
    elsewhere_ = memory == nullptr ? nullptr : memory + (kBefore + odd - ahead);
  }

 private:
  static constexpr std::size_t kPage = 4096;         // host.data() is at one, or a byte off
  static constexpr std::size_t kBefore = 2 * kPage;  // data() is never farther in
  GpuCopy(GuardedBuffer& host, cuda::DeviceBuffer device)
      : host_(&host), device_(std::move(device)) {}
  std::byte* begin() const noexcept { return elsewhere_ != nullptr ? elsewhere_ : device_.data(); }
  std::span<std::byte> whole() const noexcept { return host_->whole(); }

  GuardedBuffer* host_;
  cuda::DeviceBuffer device_;
  std::byte* elsewhere_ = nullptr;
};

}  // namespace gdrx::bench
