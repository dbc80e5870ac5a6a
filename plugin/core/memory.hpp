// SPDX-License-Identifier: Apache-2.0
// NCCL's void* mhandle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "plugin/core/comm.hpp"

namespace gdrx::net {

struct Memory {
  // Outlives the communicator, as the registration does.
  std::shared_ptr<DeviceContext> device_context;
  std::uint16_t comm = 0;
  std::span<std::byte> bytes;
  RegistrationRef registration;  // null where the fabric needs none; it may cover more
  bool gpu = false;
  std::uint32_t handed_over = 0;  // the sender's number for it; 0: not handed over

  const MemoryRegion* region() const noexcept {
    return registration ? registration->region() : nullptr;
  }
  /// What the sender's offsets count from.
  const std::byte* origin() const noexcept {
    return registration ? registration->bytes().data() : bytes.data();
  }
  /// Whether a buffer that NCCL names with this handle lies in it.
  bool holds(const std::byte* data, std::size_t size) const noexcept {
    return data >= bytes.data() && size <= bytes.size() &&
           static_cast<std::size_t>(data - bytes.data()) <= bytes.size() - size;
  }
};

/// GPU memory as NCCL has exported it; the descriptor stays NCCL's.
struct Exported {
  int fd = -1;
  Bytes offset = 0;
};

/// regMr() and regMrDmaBuf(). `type` is one of NCCL's pointer types.
Result<std::unique_ptr<Memory>> register_memory(Comm& comm, std::span<std::byte> bytes, int type,
                                                const Exported* exported);
/// The communicator may be gone.
void deregister(std::unique_ptr<Memory> memory);

}  // namespace gdrx::net
