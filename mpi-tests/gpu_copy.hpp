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
  std::byte* data() const noexcept { return device_.data() + (host_->data() - whole().data()); }
  Result<void> upload() const {
    return cuda::copy_to_device(device_.data(), whole().data(), whole().size());
  }
  Result<void> download() const {
    return cuda::copy_to_host(whole().data(), device_.data(), whole().size());
  }

 private:
  GpuCopy(GuardedBuffer& host, cuda::DeviceBuffer device)
      : host_(&host), device_(std::move(device)) {}
  std::span<std::byte> whole() const noexcept { return host_->whole(); }

  GuardedBuffer* host_;
  cuda::DeviceBuffer device_;
};

}  // namespace gdrx::bench
