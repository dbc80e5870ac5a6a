// SPDX-License-Identifier: Apache-2.0
// A peer's registered memory, mapped here.
#pragma once

#include <cstdint>
#include <memory>

#include "collectives/gpu/window_ticket.hpp"

namespace gdrx::gpu {

class Mapping {
 public:
  virtual ~Mapping() = default;  // unmaps
  /// Of the registered bytes.
  virtual std::uint8_t* data() const noexcept = 0;
};

/// Of another process, for the current device. Blocks until the deadline at most.
Result<std::unique_ptr<Mapping>> map_from_abroad(const WindowTicket& ticket, Deadline deadline);
/// Of this process: its own addresses, for which the current device gets access.
Result<std::unique_ptr<Mapping>> map_here(const WindowTicket& ticket);

}  // namespace gdrx::gpu
