// SPDX-License-Identifier: Apache-2.0
// One segment for all ranks of a communicator, which each of them maps while it is made: then no
// rank keeps a descriptor of it.
#pragma once

#include <cstdint>
#include <memory>

#include "gdrx/transport.hpp"
#include "transport/shm/segment.hpp"

namespace gdrx::shm {

/// Behind `before` bytes that are somebody else's each rank has its part: the mailbox, and the
/// first `allocated` bytes for which it asks its device. Pure: the same on every rank.
struct CommonLayout {
  std::uint32_t ranks = 1;
  std::size_t before = 0;
  std::size_t allocated = 0;

  std::size_t bytes() const noexcept;
  std::size_t mailbox_at(Rank rank) const noexcept;
  std::size_t allocated_at(Rank rank) const noexcept;
  /// What that rank's device says of itself, and of its first region.
  Blob address(const ArenaTicket& ticket, Rank rank) const;
  Blob region_key(const ArenaTicket& ticket, Rank rank) const;
};

/// The device of `self`. Errc::internal: the segment is too small.
Result<std::shared_ptr<Device>> open_device(const CommonLayout& layout,
                                            const std::shared_ptr<Segment>& segment, Rank self);

}  // namespace gdrx::shm
