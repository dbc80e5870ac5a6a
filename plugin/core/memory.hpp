// SPDX-License-Identifier: Apache-2.0
// NCCL's void* mhandle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "gdrx/transport.hpp"
#include "plugin/core/lane.hpp"

namespace gdrx::net {

struct Memory {
  std::shared_ptr<Lane> lane;  // outlives the communicator, as the registration does
  std::span<std::byte> bytes;
  std::unique_ptr<MemoryRegion> region;  // null where the fabric needs none
  bool gpu = false;
  std::uint32_t handed_over = 0;  // the sender's number for it; 0: not handed over

  /// Whether a buffer that NCCL names with this handle lies in it.
  bool holds(const std::byte* data, std::size_t size) const noexcept {
    return data >= bytes.data() && size <= bytes.size() &&
           static_cast<std::size_t>(data - bytes.data()) <= bytes.size() - size;
  }
};

}  // namespace gdrx::net
