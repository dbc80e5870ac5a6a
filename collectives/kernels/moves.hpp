// SPDX-License-Identifier: Apache-2.0
// Calls that only move bytes between the ranks of a host: how each pair's bytes are laid over
// blocks, threads and slots. Pure; sender and receiver work out the same from the bytes alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/kernels/call.hpp"
#include "collectives/kernels/shape.hpp"

namespace gdrx::gpu {

/// Bytes of a buffer.
struct Run {
  std::uint64_t at = 0;  // from its beginning
  std::uint64_t bytes = 0;
};

/// Threads of a block that move data; one warp more tells of room.
inline constexpr int kMovers = kThreads / 2;

/// What all pairs of a communicator have in common: the same on every rank.
struct Channels {
  std::uint32_t count = 1;  // blocks that may carry a pair's bytes: channel b is block b's
  std::uint32_t sets = 1;   // of slots that a channel has, for a tile each
  std::uint32_t width = 1;  // slots of a set
};

/// Packs of a pair that a thread moves at once. Few, in many blocks: that has less to set up.
constexpr int unroll_of_moves(int ranks) noexcept { return ranks <= 4 ? 2 : 1; }

/// Half of the slots are dealt out to all pairs and channels alike. Four sets keep a link busy
/// while the receiver tells of room. `blocks`: multiprocessors that a call may keep busy, with a
/// block each: two ran out of room where three ranks share a GPU. More than kMoveBlocks are slower.
constexpr Channels channels_of(int ranks, int blocks) noexcept {
  Channels made;
  made.width = static_cast<std::uint32_t>(unroll_of_moves(ranks) * kMovers);
  const std::uint32_t peers = ranks > 1 ? static_cast<std::uint32_t>(ranks - 1) : 1;
  const std::uint32_t sets = kSlots / 2 / (peers * made.width);
  const auto most = static_cast<std::uint32_t>(std::clamp(blocks, 1, kMoveBlocks));
  made.count = std::min(most, sets / 4);
  made.sets = std::min<std::uint32_t>(sets / made.count, 8);
  return made;
}
static_assert(channels_of(kMaxRanks, kMoveBlocks).sets >= 2);

/// A run as it travels: chunks of `width` packs, chunk t of channel b the (t x channels + b)-th of
/// them. A small run has narrow chunks, so that many blocks send at once.
struct Move {
  std::uint64_t at = 0;
  std::uint64_t bytes = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;
  std::uint32_t chunks = 0;

  /// That any channel has.
  constexpr std::uint32_t tiles() const noexcept {
    return channels == 0 ? 0 : (chunks + channels - 1) / channels;
  }
};

constexpr Move move_of(const Run& run, const Channels& channels) noexcept {
  constexpr std::uint64_t kNarrowest = 128;
  const std::uint64_t packs = packs_of(run.bytes);
  const std::uint64_t share = (packs + channels.count - 1) / channels.count;
  const std::uint64_t width =
      std::clamp<std::uint64_t>((share + 31) / 32 * 32, kNarrowest, channels.width);
  const std::uint64_t chunks = (packs + width - 1) / width;
  return {run.at, run.bytes, static_cast<std::uint32_t>(width),
          static_cast<std::uint32_t>(std::min<std::uint64_t>(chunks, channels.count)),
          static_cast<std::uint32_t>(chunks)};
}

/// What this rank gives to and gets from each other. `input` and `output` may be null where no byte
/// is. In place: what goes to a rank and what comes from it have the same place and length.
struct MoveCall : Call {
  Channels channels;
  std::uint32_t tiles = 0;  // the most of any pair
  Move sends[kMaxRanks];    // [rank]: to itself
  Move receives[kMaxRanks];
};

}  // namespace gdrx::gpu
