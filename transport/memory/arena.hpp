// SPDX-License-Identifier: Apache-2.0
// PeerMemory for host buffers: one anonymous shared-memory object that the ranks of a host map.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "gdrx/result.hpp"

namespace gdrx {

/// Where another process of this host finds the object: its maker's process and descriptor. The
/// nonce at the start of the object tells a stranger's descriptor (another PID namespace) from
/// ours.
struct ArenaTicket {
  std::int32_t pid = 0;
  std::int32_t fd = -1;
  std::uint64_t bytes = 0;
  std::uint64_t nonce = 0;
};

/// A mapping. It has no name in any file system, so a killed process leaves nothing behind. The
/// maker keeps the descriptor open until seal(), called when everybody has mapped it.
class Arena {
 public:
  static Result<Arena> create(std::size_t bytes);
  static Result<Arena> open(const ArenaTicket& ticket);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  ArenaTicket ticket() const noexcept { return ticket_; }
  void seal() noexcept;
  /// The usable bytes, zero at first, aligned to a page.
  std::span<std::byte> bytes() const noexcept;

 private:
  Arena() = default;
  std::byte* base_ = nullptr;
  std::size_t mapped_ = 0;
  ArenaTicket ticket_;
  bool owns_fd_ = false;
};

}  // namespace gdrx
