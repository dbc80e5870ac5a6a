// SPDX-License-Identifier: Apache-2.0
// Sends and receives between the ranks of a host, and large runs of collectives: how a message is
// laid over channels and slots.
// Pure; sender and receiver work out the same from its bytes alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/kernels/call.hpp"
#include "collectives/kernels/shape.hpp"

namespace gdrx::gpu {

/// A channel is a ring of slots in the receiver's arena: the sender fills one after the other, over
/// all messages of all calls. A message begins in it with a line whose first slot is its header,
/// and what follows takes whole lines: stores to a peer are of whole lines then.
inline constexpr std::uint32_t kShortestRing = 1024;
inline constexpr std::uint32_t kLineSlots = 8;
/// Packs that a warp sends, or takes, at once.
inline constexpr int kPairUnroll = 8;
inline constexpr std::uint32_t kPairTile = kPairUnroll * 32;
inline constexpr std::uint32_t kMostOfStep = kPairTile + kLineSlots;

/// In an arena, of all pairs that its owner is one of.
inline constexpr std::uint32_t kPairChannels = (kAllSlots - kSlots) / kShortestRing;

/// A warp works on one channel of one direction, or on some by turns.
inline constexpr int kPairWarps = 8;  // of a block, at most
inline constexpr int kPairTurns = 4;

/// What went through a channel, in slots: of what a rank sends, and of what it receives. Its own
/// kernels', one after the other.
struct alignas(16) PairWords {
  std::uint32_t sent;
  std::uint32_t emptied;  // of these, as its last kernel knew: what has been told since lies below
  std::uint32_t taken;
  std::uint32_t told;  // of these: to the sender
};
/// In a sender's arena: how many slots its receiver has emptied, as far as it has told.
inline constexpr std::uint64_t kEmptiedAt = kPairWordsAt + kPairChannels * sizeof(PairWords);

/// A message of which a channel carries at least so many packs goes in bulk, behind its header if
/// it has one: plain tiles in a ring, and a word that says how many have come. Its sender waits
/// until all are taken: the ring is empty between kernels. Collectives that go in bulk have it,
/// too.
inline constexpr std::uint64_t kLeastWidthInBulk = 2048;
inline constexpr std::uint32_t kBulkTile = 1024;
/// A ring's. A side moves some at once and tells of them by one fence, which is as long as some
/// tiles; meanwhile the other has as many.
inline constexpr std::uint32_t kLeastTiles = 8, kMostTiles = 16;
/// A GPU that moves tiles by itself has memory for so many in a block, shared by so many warps.
inline constexpr std::uint32_t kStagedTiles = 12;
inline constexpr std::uint32_t kWarpsOfStaged = 4;
/// More blocks are no faster then, and take the room of other communicators' kernels.
inline constexpr std::uint32_t kMostStagedBlocks = 64;

/// What one side of a message knows of it. A copy from a rank to itself: `word` is where to.
struct Message {
  std::uint8_t* at = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t word = 0;   // the header's first, which says the type; its second are the bytes
  std::uint64_t width = 0;  // packs of a channel

  constexpr bool goes_in_bulk() const noexcept { return width >= kLeastWidthInBulk; }
};

/// Messages of a call that are too many for its arguments lie in the arena.
inline constexpr std::uint64_t kMessagesAt = kEmptiedAt + kPairChannels * sizeof(Room);
inline constexpr std::uint32_t kMessages = 16384;
static_assert(kMessagesAt % sizeof(Pack) == 0);
static_assert(kMessagesAt + kMessages * sizeof(Message) <= kSlotsAt);
inline constexpr std::uint32_t kMessagesAtOnce = 64;

/// In an arena, of each channel of each peer, how many tiles went through it, over all calls: of
/// what its owner gets how many have come, of what it sends how many are taken.
using Tiles = std::uint64_t;
inline constexpr std::uint64_t kTilesComeAt = kMessagesAt + kMessages * sizeof(Message);
inline constexpr std::uint64_t kTilesTakenAt = kTilesComeAt + kPairChannels * sizeof(Tiles);
/// As its owner counts them, and the next one's place in the ring: of what it sends and gets.
struct alignas(8) TilesKept {
  std::uint32_t count;
  std::uint32_t at;
};
inline constexpr std::uint64_t kTilesSentAt = kTilesTakenAt + kPairChannels * sizeof(Tiles);
inline constexpr std::uint64_t kTilesGotAt = kTilesSentAt + kPairChannels * sizeof(TilesKept);
inline constexpr std::uint64_t kTilesEnd = kTilesGotAt + kPairChannels * sizeof(TilesKept);
static_assert(kTilesEnd <= kSlotsAt);

/// An ordered pair of ranks has so much of the rings for what goes in bulk.
constexpr std::uint64_t bulk_bytes_of_pair(int ranks) noexcept {
  constexpr std::uint64_t kLine = kLineSlots * sizeof(Pack);
  const auto peers = static_cast<std::uint64_t>(ranks > 1 ? ranks - 1 : 1);
  return (kArenaBytes - kBulkAt) / peers / kLine * kLine;
}

/// What all ordered pairs of a communicator have in common: the same on every rank.
struct PairChannels {
  std::uint32_t count = 1;
  std::uint32_t ring = kShortestRing;  // slots of each, a power of two
  std::uint32_t bulk = 1;              // channels, the first, that carry what goes in bulk
  std::uint32_t tiles = 1;             // of each of those
  std::uint64_t bulk_bytes = 0;        // of a pair: here, since to divide takes a GPU long
};

/// `blocks`: multiprocessors that a call may keep busy. They carry every channel of every peer, so
/// that no wait is for a block that has no room.
constexpr PairChannels channels_of_pair(int ranks, int blocks) noexcept {
  const auto peers = static_cast<std::uint32_t>(ranks > 1 ? ranks - 1 : 1);
  const auto warps = static_cast<std::uint32_t>(std::max(blocks, 1) * kPairWarps * kPairTurns);
  const std::uint32_t slots = (kAllSlots - kSlots) / peers;
  PairChannels made;
  made.count = std::min(kPairChannels, warps / 2) / peers;
  while (made.count * made.ring * 2 <= slots) made.ring *= 2;
  made.bulk_bytes = bulk_bytes_of_pair(ranks);
  const auto tiles = static_cast<std::uint32_t>(made.bulk_bytes / (kBulkTile * sizeof(Pack)));
  const auto most = static_cast<std::uint32_t>(std::max(blocks, 1));
  const std::uint32_t bulk = std::min(most, kMostStagedBlocks) * kWarpsOfStaged / 2;
  made.bulk = std::clamp(bulk, 1U, std::min(made.count, tiles / kLeastTiles));
  made.tiles = std::min(kMostTiles, tiles / made.bulk);
  return made;
}
static_assert(channels_of_pair(kMaxRanks, 1).count == 1);
static_assert(channels_of_pair(2, 1024).tiles >= kLeastTiles);
static_assert(channels_of_pair(kMaxRanks, 1024).tiles >= kLeastTiles);

/// Packs of a message that a channel carries, one run of it: small ones go over many channels, too,
/// but not by less than a pack a thread.
constexpr std::uint64_t width_of_message(std::uint64_t bytes,
                                         const PairChannels& channels) noexcept {
  constexpr std::uint64_t kNarrowest = 32;
  const std::uint64_t packs = packs_of(bytes);
  const std::uint64_t in_bulk = (packs + channels.bulk - 1) / channels.bulk;
  if (in_bulk >= kLeastWidthInBulk) return (in_bulk + kBulkTile - 1) / kBulkTile * kBulkTile;
  const std::uint64_t share = (packs + channels.count - 1) / channels.count;
  return std::max(kNarrowest, (share + kLineSlots - 1) / kLineSlots * kLineSlots);
}

/// That carry some of it: of no bytes the header alone.
constexpr std::uint32_t channels_of_message(const Message& message) noexcept {
  const std::uint64_t packs = packs_of(message.bytes);
  return packs == 0 ? 1 : static_cast<std::uint32_t>((packs + message.width - 1) / message.width);
}

/// Messages of one direction between this rank and a peer, in the order of their calls.
struct PairLine {
  std::uint32_t peer = 0;
  std::uint32_t sends = 0;     // 0: this rank receives
  std::uint32_t first = 0;     // of its messages
  std::uint32_t end = 0;       // behind its last
  std::uint32_t end_task = 0;  // its channels are the tasks from the line before's end on
};

/// All that a rank sends and receives in one launch.
struct PairCall : Call {
  PairChannels channels;
  std::uint32_t tasks = 0;
  std::uint32_t lines_used = 0;
  std::uint32_t first_copy = 0;  // among the messages, behind those of all lines
  std::uint32_t end_copy = 0;
  std::uint32_t in_arena = 0;  // 1: the messages lie there, not here
  std::uint32_t tiles_at_once = 2;
  PairLine lines[2 * kMaxRanks];
  Message messages[kMessagesAtOnce];
};
static_assert(sizeof(PairCall) <= 4096);  // what a kernel may be given

/// Of a launch with so many tasks and bytes that a rank copies to itself. `relays` of the tasks
/// need a warp each.
struct PairGrid {
  int blocks = 1;
  int threads = 32;
  bool by_turns = false;  // a warp may have more than one task
  bool in_bulk = false;   // a message may go so
  bool is_staged = false;

  constexpr std::uint32_t tiles_at_once(const PairChannels& channels) const noexcept {
    const std::uint32_t tiles =
        is_staged ? kStagedTiles * 32 / static_cast<std::uint32_t>(threads) : 2;
    return std::min(tiles, channels.tiles / 2);
  }
};
constexpr PairGrid grid_of_pairs(std::uint32_t tasks, std::uint64_t copied, int blocks,
                                 bool in_bulk, std::uint32_t warps_of_staged = kWarpsOfStaged,
                                 std::uint32_t relays = 0) noexcept {
  constexpr std::uint64_t kCopiedByBlock = 64 << 10;
  const auto most = static_cast<std::uint64_t>(std::max(blocks, 1));
  const std::uint64_t copiers = (copied + kCopiedByBlock - 1) / kCopiedByBlock;
  const std::uint64_t staged = std::min<std::uint64_t>(most, kMostStagedBlocks);
  PairGrid grid;
  grid.in_bulk = in_bulk;
  const std::uint64_t staged_warps = staged * warps_of_staged;
  grid.is_staged = in_bulk && tasks <= staged_warps * kPairTurns && relays <= staged_warps;
  const std::uint64_t blocks_used = grid.is_staged ? staged : most;
  grid.blocks = static_cast<int>(
      std::clamp<std::uint64_t>(std::max<std::uint64_t>(tasks, copiers), 1, blocks_used));
  const std::uint64_t warps = (tasks + blocks_used - 1) / blocks_used;
  const std::uint64_t all = grid.is_staged ? warps_of_staged : kPairWarps;
  grid.by_turns = warps > all;
  grid.threads = 32 * static_cast<int>(copied > 0 ? all : std::clamp<std::uint64_t>(warps, 1, all));
  return grid;
}

/// Fewer blocks have no turn of a warp for each task.
constexpr int least_blocks_of_pairs(std::uint32_t tasks) noexcept {
  constexpr std::uint32_t kOfABlock = kPairWarps * kPairTurns;
  return static_cast<int>((tasks + kOfABlock - 1) / kOfABlock);
}

/// Some of the messages, on their way into the arena.
struct MessageBatch {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  Message messages[kMessagesAtOnce];
};

}  // namespace gdrx::gpu
