// SPDX-License-Identifier: Apache-2.0
// A collective whose large runs go as messages do: see pairs.hpp. Pure.
#pragma once

#include "collectives/kernels/moves.hpp"
#include "collectives/kernels/pairs.hpp"

namespace gdrx::gpu {

/// A run of a pair that has at least so many bytes goes so.
inline constexpr std::uint64_t kLeastInBulk = 4 << 20;
/// Between two GPUs a call of so many blocks is faster by slots, as far as it was measured: a
/// channel in bulk fills and empties whole tiles before the other side has anything to do.
inline constexpr int kBlocksOfSlots = 96;
inline constexpr std::uint64_t kMostBySlots = 256 << 20;
/// The same on both sides: `blocks` is what all ranks have agreed on.
constexpr std::uint64_t least_in_bulk(int ranks, int blocks) noexcept {
  return ranks == 2 && blocks >= kBlocksOfSlots ? kMostBySlots : kLeastInBulk;
}
/// A warp then has as many tiles for a fence as fill the link.
inline constexpr std::uint32_t kWarpsOfMoved = 3;

/// Of those that carry what goes in bulk, so many, the first: where all ranks send to all each warp
/// of a launch has one of a direction. More keep more of the rings in the cache, and are slower.
constexpr std::uint32_t channels_of_moved(int ranks, const PairChannels& channels) noexcept {
  const auto peers = static_cast<std::uint32_t>(ranks > 1 ? ranks - 1 : 1);
  return std::clamp(kMostStagedBlocks * kWarpsOfMoved / (2 * peers), 1U, channels.bulk);
}

/// What goes in bulk whatever its length, without a header: the ranks compare what they enter.
constexpr std::uint64_t width_in_bulk(std::uint64_t bytes, std::uint32_t channels) noexcept {
  const std::uint64_t share = (packs_of(bytes) + channels - 1) / channels;
  return std::max(kLeastWidthInBulk, (share + kBulkTile - 1) / kBulkTile * kBulkTile);
}

/// Over at most so many blocks: of so many relays, see MovedMessages, those that follow at least.
constexpr PairGrid grid_of_moved(std::uint32_t tasks, std::uint32_t relays, std::uint64_t copied,
                                 int blocks) noexcept {
  return grid_of_pairs(tasks + relays, copied, blocks, true, kWarpsOfMoved, relays);
}
/// Fewer have no warp for each relay.
constexpr int least_blocks_of_relays(std::uint32_t relays) noexcept {
  return std::max(1, static_cast<int>((relays + kPairWarps - 1) / kPairWarps));
}

/// All that a rank gives and gets in it is among its messages, or is `relayed`.
struct MovedMessages : PairCall {
  std::uint32_t relays = 0;  // channels of what comes from a rank and goes on to all others
  std::uint32_t relay_from = 0;
  Message relayed;
  std::uint32_t paired = 0;             // tasks, the first: see Carrier
  std::uint32_t enters = 1;             // 0: a kernel ahead of this one has entered the call
  std::uint64_t gives[kMaxRanks] = {};  // bytes, as the peers are told, or expected to tell
  std::uint64_t gets[kMaxRanks] = {};
};
static_assert(sizeof(MovedMessages) <= 4096);  // what a kernel may be given

}  // namespace gdrx::gpu
