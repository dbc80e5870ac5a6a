// SPDX-License-Identifier: Apache-2.0
// How the ranks of a host share the arena: a line a rank for its stage and its handshake words,
// then two generations of a slot a rank and of one result block.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "collectives/exec/word.hpp"

namespace gdrx::exec {

inline constexpr std::size_t kWordParts = sizeof(Word) / sizeof(std::uint64_t);

/// What the others wait for, and what most of them read next: a pair of cache lines that processors
/// fetch together.
struct alignas(128) ArenaFront {
  static constexpr std::size_t kData = 80;
  /// Stages completed since the communicator was made. Its release publishes everything that this
  /// rank wrote before: what is below, slots, results.
  std::atomic<std::uint64_t> stage;
  Word word;  // of the call whose first stage that was
  /// Its input, where all of it has room here: in place of a slot.
  alignas(16) std::byte data[kData];
};
static_assert(sizeof(ArenaFront) == 128);

/// What a rank publishes.
struct ArenaLine {
  ArenaFront fronts[2];  // by the parity of the stage: as slots
  /// Words by the parity of their call, on whichever path it runs. `published` is call + 1 while
  /// the word is whole, else 0: a sequence lock, because a root may run ahead by more than one
  /// call.
  struct alignas(64) Published {
    std::atomic<std::uint64_t> published;
    std::atomic<std::uint64_t> word[kWordParts];
  };
  Published calls[2];
  /// Where the others write its results, in its process; 0: nowhere. Published by the first stage
  /// of a call; nobody leaves a call before all have written, so one is enough.
  std::atomic<std::uint64_t> output;
  /// Through which they do, as long as it is open (WriteGate).
  std::atomic<std::uint64_t> gate;
  /// From that stage on, counted from 1, of the call that it belongs to, this rank's slices stand
  /// in the result block as well: it could not write them to everybody. Never smaller than before,
  /// so that nothing has to be taken back.
  std::atomic<std::uint64_t> kept;
  /// The thread that may be writing to an output that it has read, or 0. Whoever gives a call up
  /// closes his gate and then waits for this.
  std::atomic<std::int32_t> writing;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// A view of a mapped arena, the same on every rank.
class ArenaLayout {
 public:
  /// The block for which slots and results stay in the cache, at most `wanted` bytes.
  static std::size_t block_for(int ranks, std::size_t wanted) noexcept;
  static std::size_t bytes(int ranks, std::size_t block) noexcept;

  ArenaLayout(std::span<std::byte> memory, int ranks, std::size_t block) noexcept
      : memory_(memory), ranks_(ranks), block_(block) {}

  int ranks() const noexcept { return ranks_; }
  std::size_t block() const noexcept { return block_; }
  ArenaLine& line(int rank) const noexcept {
    return reinterpret_cast<ArenaLine*>(memory_.data())[rank];
  }
  ArenaFront& front(std::uint64_t stage, int rank) const noexcept {
    return line(rank).fronts[stage & 1];
  }
  std::byte* slot(std::uint64_t generation, int rank) const noexcept;
  std::byte* result(std::uint64_t generation) const noexcept;

  /// Publishes this rank's call, on whichever path it runs.
  void publish(int rank, const Word& word, std::uint64_t call) const noexcept;
  /// What the rank published for that call; empty: nothing yet, or it has made later calls since.
  std::optional<Word> published(int rank, std::uint64_t call) const noexcept;
  /// A peer that published another word for the same call, by rank, and the word; -1 if there is
  /// none so far.
  int find_mismatch(int self, const Word& word, std::uint64_t call, Word& theirs) const noexcept;

 private:
  std::span<std::byte> memory_;
  int ranks_;
  std::size_t block_;
};

}  // namespace gdrx::exec
