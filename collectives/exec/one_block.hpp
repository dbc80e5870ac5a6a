// SPDX-License-Identifier: Apache-2.0
// A call of one block in one hop: each rank publishes what others need of its input, and takes what
// it needs of theirs. And the whole of it, for whoever makes such a call in one go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/exec/arena_execution.hpp"
#include "collectives/exec/arena_layout.hpp"

namespace gdrx::exec {

/// Whether calls of that collective are made so: those in which each rank needs something of every
/// other, and by which nobody can run ahead.
constexpr bool has_one_block(Collective collective) noexcept {
  return collective == Collective::all_reduce || collective == Collective::all_gather ||
         collective == Collective::reduce_scatter || collective == Collective::all_to_all;
}
/// Bytes that each rank publishes. A barrier's are none.
std::uint64_t published_bytes(const Word& word, int ranks) noexcept;
inline constexpr int kMostRanksOfOneBlock = 32;
/// `vector`: bytes of the longer of a call's buffers.
constexpr bool fits_one_block(Collective collective, std::uint64_t vector, int ranks,
                              std::uint64_t block) noexcept {
  const bool shared = collective == Collective::all_gather;
  return ranks <= kMostRanksOfOneBlock &&
         (shared ? vector / static_cast<std::uint64_t>(ranks) : vector) <= block;
}

/// This rank's result. `blocks`: by rank, what each has published.
void take_block(const ArenaCall& call, int self, std::span<const std::byte* const> blocks) noexcept;

/// Its two stages, as an ArenaExecution of the same call would do them; that can go on behind the
/// first. Without traces and users' operators. Keeps references to what it is made of.
class OneBlock {
 public:
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
