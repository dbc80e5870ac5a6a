// SPDX-License-Identifier: Apache-2.0
// A one-shot call of one block, for whoever makes it in one go.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/exec/arena_execution.hpp"
#include "collectives/exec/arena_layout.hpp"

namespace gdrx::exec {

/// Its two stages, as an ArenaExecution of the same call would do them; that can go on behind the
/// first. Without traces and users' operators. Keeps references to what it is made of.
class OneBlock {
 public:
  static bool fits(const ArenaLayout& layout, std::uint64_t bytes) noexcept {
    return bytes <= layout.block() && layout.ranks() <= kMostRanks;
  }
  /// Publishes this rank's input.
  OneBlock(const ArenaLayout& layout, int self, const ArenaCall& call) noexcept;
  /// Whether all ranks have published theirs.
  bool all_have_come() noexcept;
  /// After that: whether all make the same call. It is not ended otherwise.
  bool agree() const noexcept;
  /// After that: the result.
  void end() noexcept;
  Counters counters() const noexcept;
  /// As the ArenaExecution's.
  std::uint64_t end_stage() const noexcept { return call_.base + 3; }

 private:
  static constexpr int kMostRanks = 32;
  std::byte* block_of(int rank) const noexcept {
    return in_front_ ? layout_.front(call_.base + 1, rank).data : layout_.slot(call_.base, rank);
  }

  const ArenaLayout& layout_;
  const ArenaCall& call_;
  int self_;
  bool in_front_;
  int come_ = 0;  // ranks before this one have
};

}  // namespace gdrx::exec
