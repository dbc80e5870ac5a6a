// SPDX-License-Identifier: Apache-2.0
// How the ranks of a host share the arena: a line a rank for its posts, its stage and its call
// signatures, then two generations of a slot a rank and of one result block, then shelves of a
// place a rank for calls with a root, then a ring from each rank to each other.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "collectives/exec/call_signature.hpp"
#include "collectives/exec/pair_ring.hpp"

namespace gdrx::exec {

inline constexpr std::size_t kSignatureParts = sizeof(CallSignature) / sizeof(std::uint64_t);

/// Posts of a rank, one a call with a root: who gives and takes nothing is so many calls ahead of
/// its readers at most, and half as many whatever they have told (ArenaSeat).
inline constexpr std::uint64_t kPosts = 32;
/// Calls of which everybody can read which ones they were: more than lie between two ranks.
inline constexpr std::uint64_t kKnownCalls = 2 * kPosts;

/// What a rank gives to a call with a root is no larger, and no more ranks make it here.
inline constexpr std::size_t kMostOnShelf = 32 * 1024;
inline constexpr int kMostRanksInOneHop = 32;

/// What a rank gives to a call: what the others wait for, and what most of them read next. A pair
/// of cache lines that processors fetch together, with few bytes one.
struct alignas(128) ArenaPost {
  static constexpr std::size_t kData = 80;
  /// The call's sequence + 1. Its release publishes everything that this rank wrote before: what is
  /// below, and its slot.
  std::atomic<std::uint64_t> call;
  CallSignature signature;
  std::uint64_t past;  // digest of the signatures of all calls before this one
  /// What it gives, where all of it has room here: in place of a slot or a shelf.
  alignas(16) std::byte data[kData];
};
static_assert(sizeof(ArenaPost) == 128);

/// What a rank publishes.
struct ArenaLine {
  ArenaPost fronts[2];      // of calls in which all give to all, in turn: as slots
  ArenaPost posts[kPosts];  // of others in the arena, by the call
  /// Signatures by their call, on whichever path it runs. `published` is call + 1 while the
  /// signature is whole, else 0: a sequence lock, because a rank may run ahead.
  struct alignas(64) Published {
    std::atomic<std::uint64_t> published;
    std::atomic<std::uint64_t> signature[kSignatureParts];
  };
  Published calls[kKnownCalls];
  /// Of calls before this one the rank reads nothing any more. Told now and then (ArenaSeat).
  alignas(64) std::atomic<std::uint64_t> passed;
  /// Stages completed of calls of several, since the communicator was made. Its release publishes
  /// slots and results.
  alignas(64) std::atomic<std::uint64_t> stage;
  /// Where the others write its results, in its process; 0: nowhere. Published by the post of a
  /// call; nobody leaves a call before all have written, so one is enough.
  alignas(64) std::atomic<std::uint64_t> output;  // not with the stage, which others wait for
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

  /// `shared`: ranks share cores.
  ArenaLayout(std::span<std::byte> memory, int ranks, std::size_t block, bool shared) noexcept;

  int ranks() const noexcept { return ranks_; }
  std::size_t block() const noexcept { return block_; }
  ArenaLine& line(int rank) const noexcept {
    return reinterpret_cast<ArenaLine*>(memory_.data())[rank];
  }
  ArenaPost& post(std::uint64_t call, int rank) const noexcept {
    return line(rank).posts[call % kPosts];
  }
  std::byte* slot(std::uint64_t generation, int rank) const noexcept;
  std::byte* result(std::uint64_t generation) const noexcept;
  /// Calls with a root have their shelves in turn: two, which stay in the nearest cache, where each
  /// rank has a core. Else up to sixteen: who waits for a reader there waits for the scheduler.
  std::size_t shelves() const noexcept { return shelves_; }
  std::byte* shelf(std::size_t number, int rank) const noexcept;
  /// With this rank at one end. Empty: so many ranks have none.
  std::optional<PairRings> rings(int self) const noexcept;
  static constexpr std::size_t shelf_bytes(std::size_t block) noexcept {
    return std::min(block, kMostOnShelf);
  }

  /// Publishes this rank's call, on whichever path it runs.
  void publish(int rank, const CallSignature& signature, std::uint64_t call) const noexcept;
  /// What the rank published for that call; empty: nothing yet, or it has made later calls since.
  std::optional<CallSignature> published(int rank, std::uint64_t call) const noexcept;

 private:
  std::span<std::byte> memory_;
  int ranks_;
  std::size_t block_;
  std::size_t shelves_;
};

// Each call comes here.
inline void ArenaLayout::publish(int rank, const CallSignature& signature,
                                 std::uint64_t call) const noexcept {
  ArenaLine::Published& mine = line(rank).calls[call % kKnownCalls];
  const auto parts = std::bit_cast<std::array<std::uint64_t, kSignatureParts>>(signature);
  mine.published.store(0, std::memory_order_relaxed);
  // release fence: a reader that sees a new part sees published change as well
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    mine.signature[i].store(parts[i], std::memory_order_relaxed);
  }
  mine.published.store(call + 1, std::memory_order_release);  // the signature is whole
}

}  // namespace gdrx::exec
