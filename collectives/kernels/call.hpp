// SPDX-License-Identifier: Apache-2.0
// What a kernel is told, and the memory it shares with its peers. Plain data for both compilers.
#pragma once

#include <cstdint>

#include "collectives/kernels/flags.hpp"

namespace gdrx::gpu {

/// Two ranks a GPU on a host of eight.
inline constexpr int kMaxRanks = 16;
/// Threads of a block; kernels are compiled for at most this many.
inline constexpr int kThreads = 512;

/// 16 bytes, the unit that is written to a peer: whole or not at all.
struct alignas(16) Pack {
  std::uint64_t low;
  std::uint64_t high;
};

/// Written by a peer's block: the call it is in, and of how many tiles of it the slots are empty.
using Room = std::uint64_t;
inline constexpr int kRoomBlocks = 384;

/// As its kernels know a communicator: by the lease of its arena. A graph may hold kernels of one
/// that is gone, whose arena nobody has, or another one.
constexpr std::uint32_t owner_of(std::uint32_t lease) noexcept { return lease << 1; }
/// Of Control::owner.
constexpr bool is_of(std::uint32_t word, std::uint32_t owner) noexcept { return word - owner <= 1; }

/// The first page of an arena. Its own kernels write all but `entered`,
/// `room` and `departed`; its host ends `owner`.
struct alignas(256) Control {
  std::uint32_t calls;     // kernels that began; changes once all blocks of one have read it
  std::uint32_t owner;     // whose kernels may run, 0: nobody's; +1: the last used the whole arena
  std::uint32_t arrivals;  // blocks of the running one that have read the two
  std::uint32_t failed;    // 1: some thread gave up; the report is taken
  std::uint32_t aborted;   // 1: no thread waits any more
  std::uint32_t looked;    // when a thread last looked at the report, in ticks
  // Written by rank r as it enters a call: see entered_of(). Of calls of odd and of even numbers.
  alignas(256) Pack entered[2][kMaxRanks];
  alignas(256) Room room[kRoomBlocks];  // of two ranks, by block
  alignas(64) Counts counts;
  // Written by rank r's host after a failure: this owner's lease, once its kernels write here no
  // longer.
  alignas(64) std::uint32_t departed[kMaxRanks];
};
static_assert(sizeof(Control) <= 4096);

/// The first word of `entered` is the call's number, and its signature above that; the second its
/// bytes, of a move those that the peer gets.
inline constexpr int kNumberBits = 16;

/// GPU memory of one rank that its peers write: control page, one escape byte a slot, for each
/// block and peer the call that it is done with, for each block and peer of a move its Room, what
/// sends and receives need (see pairs.hpp), slots of collectives, slots of sends and receives, and
/// rings of what goes in bulk (see pairs.hpp). A slot that nobody has written holds the sentinel.
inline constexpr std::uint64_t kEscapesAt = 4096;
inline constexpr std::uint64_t kSlotsAt = 2 << 20;
inline constexpr std::uint64_t kPairSlotsAt = 17 << 20;
inline constexpr std::uint64_t kBulkAt = 24 << 20;
inline constexpr std::uint64_t kArenaBytes = 48 << 20;
inline constexpr std::uint32_t kSlots =
    static_cast<std::uint32_t>((kPairSlotsAt - kSlotsAt) / sizeof(Pack));
inline constexpr std::uint32_t kAllSlots =
    static_cast<std::uint32_t>((kBulkAt - kSlotsAt) / sizeof(Pack));
inline constexpr std::uint64_t kLeftAt = kEscapesAt + kAllSlots;
inline constexpr int kMaxBlocks = 640;
inline constexpr std::uint64_t kRoomsAt = kLeftAt + kMaxBlocks * kMaxRanks * sizeof(std::uint32_t);
inline constexpr int kMoveBlocks = 128;
static_assert(kRoomsAt % sizeof(Room) == 0);
inline constexpr std::uint64_t kPairWordsAt = kRoomsAt + kMoveBlocks * kMaxRanks * sizeof(Room);
static_assert(kPairWordsAt <= kSlotsAt);

/// What a slot holds before a write. Any 128 bits may be data: a pack that equals the sentinel is
/// sent as kEscape with its meaning in the slot's escape byte, and so is kEscape itself.
inline constexpr std::uint64_t kSentinelLow = 0x9d3f72c1e5a80b46;
inline constexpr std::uint64_t kSentinelHigh = 0x4be91d07a6f35c82;
inline constexpr std::uint64_t kEscapeHigh = 0xb2460f98d17ce35a;  // with kSentinelLow

/// Where a waiting kernel looks now and then, and writes why it gave up. Pinned host memory.
struct Report {
  std::uint32_t abort;  // written by the host: 1 ends every wait
  std::uint32_t failed;
  std::uint32_t peer;  // who was waited for
  std::uint32_t call;
  std::uint32_t stage;  // one of Stage
  std::uint32_t slot;   // the first that the thread waits for, or the block that leaves or sends
  std::uint32_t timeout_ms;  // of the kernel
  Pack mine, theirs;         // disagreeing: what the two entered
  Pack doing;                // which call last told of a wait
  /// Of a long wait for rank r, while it lasts: see told_of().
  std::uint64_t waits[kMaxRanks];
};

enum class Stage : std::uint32_t {
  entering,
  reducing,
  gathering,
  leaving,
  disagreeing,
  sending,
  receiving
};

/// A word of Report::waits: a tick, which is another one each time, the stage, and for how long a
/// thread has waited then, in units of 2^20 ns. 0: not long enough to be told.
constexpr std::uint64_t told_of(std::uint32_t tick, Stage stage, std::uint64_t waited_ns) noexcept {
  const auto units = static_cast<std::uint32_t>(waited_ns >> 20);
  if (units < 10) return 0;
  return std::uint64_t{tick} << 32 |
         std::uint64_t{static_cast<std::uint32_t>(stage) << 28 | (units & 0xfffffff)};
}

/// Where a rank stands in the ring: its position from 0 on, and the ranks beside it.
struct RingPlace {
  std::int32_t position = 0;
  std::int32_t left = 0;
  std::int32_t right = 0;
};

/// A rank's neighbours in one of two trees; -1: none. It is the `branch`-th child of its parent.
struct TreePlace {
  std::int32_t parent = -1;
  std::int32_t branch = 0;
  std::int32_t children[2] = {-1, -1};
};

/// The launch arguments. Every rank launches the same grid with the same values but for buffers,
/// rank and its places in the ring and the trees.
struct Call {
  const void* input = nullptr;
  void* output = nullptr;
  std::uint64_t bytes = 0;   // of the vector
  std::uint64_t block = 0;   // reduce_scatter, all_gather: of a rank's part
  std::uint64_t before = 0;  // of the sums: so many bytes lie before what `output` takes,
  std::uint64_t behind = 0;  // so many behind it,
  std::uint64_t first = 0;   // and this pack is the first that it may take whole
  std::uint8_t* arena[kMaxRanks] = {};  // mapped here; [rank] is this rank's own
  Report* report = nullptr;             // the device's address of it
  std::uint64_t timeout_ns = 0;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  std::int32_t op = 0;           // ReduceOp
  std::int32_t finish_over = 0;  // avg: the number of ranks, else 0
  std::int32_t type = 0;         // DataType
  std::uint32_t owner = 0;       // beside what else is read as a kernel begins
  std::uint64_t signature = 0;   // equal on all ranks, its lowest kNumberBits 0
  RingPlace ring;
  TreePlace trees[2];
};

/// The same of a kernel that has no Call. Without a control page: nobody has to be there.
struct Guard {
  const Control* control = nullptr;
  std::uint32_t owner = 0;
};

/// A call of Kernel::direct: each rank's buffers, mapped here. `place` says which they are: equal
/// on all ranks that mean the same windows and offsets, never 0. The signature has it.
struct DirectCall : Call {
  std::uint64_t place = 0;
  const std::uint8_t* inputs[kMaxRanks] = {};
  std::uint8_t* outputs[kMaxRanks] = {};
};

}  // namespace gdrx::gpu
