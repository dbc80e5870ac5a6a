// SPDX-License-Identifier: Apache-2.0
// Large runs of bytes between two ranks of a host go in bulk: a sender fills a ring of chunks in
// the receiver's arena and says with a word how many are there, the receiver says how many it has
// taken. A slot that is its own flag has less latency; a chunk has fewer instructions a byte. How a
// run is cut follows from its bytes alone. Pure.
#pragma once

#include "collectives/kernels/moves.hpp"
#include "collectives/kernels/pairs.hpp"

namespace gdrx::gpu {

/// A run of a pair that has at least so many bytes goes in bulk.
inline constexpr std::uint64_t kLeastInBulk = 4 << 20;

/// Packs of a chunk: some a thread at once, so that what is on its way fills the link.
inline constexpr int kBulkUnroll = 8;
inline constexpr std::uint32_t kBulkChunk = kBulkUnroll * kMovers;

/// What all ordered pairs have in common: the same on every rank.
struct BulkChannels {
  std::uint32_t count = 1;   // chunk k of a run is channel k % count's
  std::uint32_t chunks = 1;  // of a channel's ring
  std::uint64_t bytes = 0;   // of a pair's rings
};

/// All pairs together keep about 100 blocks busy. More chunks of a ring than eight fill the cache
/// and not the link.
constexpr BulkChannels bulk_channels_of(int ranks) noexcept {
  BulkChannels made;
  made.count = ranks <= 2 ? 32 : ranks <= 4 ? 16 : ranks <= 8 ? 8 : 4;
  made.bytes = bulk_bytes_of_pair(ranks);
  const std::uint64_t room = made.bytes / (made.count * kBulkChunk * sizeof(Pack));
  made.chunks = room < 8 ? static_cast<std::uint32_t>(room) : 8;
  return made;
}
static_assert(bulk_channels_of(2).chunks >= 4 && bulk_channels_of(kMaxRanks).chunks >= 4);

/// In an arena, of each channel of each peer: of which call how many chunks have come, and of what
/// its owner sent how many are taken. A line of memory each.
inline constexpr std::uint32_t kBulkWords = 64;
inline constexpr std::uint64_t kBulkWordBytes = 128;
inline constexpr std::uint64_t kBulkComeAt = kSlotsAt - kBulkWords * kBulkWordBytes;
inline constexpr std::uint64_t kBulkTakenAt = kBulkComeAt - kBulkWords * kBulkWordBytes;
static_assert(kTilesEnd <= kBulkTakenAt);
static_assert(bulk_channels_of(2).count * 2 <= kBulkWords);
static_assert(bulk_channels_of(kMaxRanks).count * kMaxRanks <= kBulkWords);

/// What becomes of a run. `pass_on`: it comes, and goes on to all ranks but its sender: a large
/// broadcast is a piece to each rank that each passes on.
enum class Bulk : std::uint32_t { send, pass_on, receive };

struct BulkRun {
  Bulk what{};
  std::int32_t peer = 0;
  std::uint32_t first_task = 0;  // its channels are the tasks from here on
  std::uint64_t at = 0;
  std::uint64_t bytes = 0;

  constexpr std::uint32_t chunks(std::uint32_t channel, std::uint32_t channels) const noexcept {
    const auto all = static_cast<std::uint32_t>((packs_of(bytes) + kBulkChunk - 1) / kBulkChunk);
    return all > channel ? (all - channel - 1) / channels + 1 : 0;
  }
};

/// A move of which some runs go in bulk; these have no channels among its `sends` and `receives`.
/// Task t is block t % blocks's.
struct BulkCall : MoveCall {
  BulkChannels bulk;
  std::uint32_t runs_used = 0;
  std::uint32_t tasks = 0;
  BulkRun runs[2 * kMaxRanks];

  constexpr void add(Bulk what, int peer, std::uint32_t first_task, const Run& run) noexcept {
    runs[runs_used++] = {what, peer, first_task, run.at, run.bytes};
    if (first_task + bulk.count > tasks) tasks = first_task + bulk.count;
  }
};
static_assert(sizeof(BulkCall) <= 4096);  // what a kernel may be given

}  // namespace gdrx::gpu
