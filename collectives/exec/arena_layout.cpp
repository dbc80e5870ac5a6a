// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/arena_layout.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace gdrx::exec {
namespace {

// Both generations of all slots should stay in a last-level cache of a few tens of MiB.
constexpr std::size_t kCacheBudget = 16 * 1024 * 1024;
constexpr std::size_t kArenaPage = 4096;
constexpr std::size_t kShelvesAlone = 2;
constexpr std::size_t kShelvesShared = 16;
constexpr std::size_t kShelfBudget = 8 * 1024 * 1024;

std::size_t lines_of(int ranks) noexcept {
  return (static_cast<std::size_t>(ranks) * sizeof(ArenaLine) + kArenaPage - 1) / kArenaPage *
         kArenaPage;
}

// Eight at least.
std::size_t most_shelves(int ranks, std::size_t block) noexcept {
  if (ranks > kMostRanksInOneHop) return 0;
  const std::size_t one = static_cast<std::size_t>(ranks) * ArenaLayout::shelf_bytes(block);
  return std::min(kShelvesShared, kShelfBudget / one);
}

std::size_t rings_at(int ranks, std::size_t block) noexcept {
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t shelves = most_shelves(ranks, block) * n * ArenaLayout::shelf_bytes(block);
  return lines_of(ranks) + 2 * (n + 1) * block + shelves;
}

}  // namespace

ArenaLayout::ArenaLayout(std::span<std::byte> memory, int ranks, std::size_t block,
                         bool shared) noexcept
    : memory_(memory),
      ranks_(ranks),
      block_(block),
      shelves_(std::min(most_shelves(ranks, block), shared ? kShelvesShared : kShelvesAlone)) {}

std::size_t ArenaLayout::block_for(int ranks, std::size_t wanted) noexcept {
  const std::size_t fits = kCacheBudget / (2 * (static_cast<std::size_t>(ranks) + 1));
  return std::max(kArenaPage, std::min(wanted, fits) / kArenaPage * kArenaPage);
}

std::size_t ArenaLayout::bytes(int ranks, std::size_t block) noexcept {
  return rings_at(ranks, block) + PairRings::bytes(ranks);
}

std::byte* ArenaLayout::slot(std::uint64_t generation, int rank) const noexcept {
  const auto n = static_cast<std::size_t>(ranks_);
  const std::size_t number = (generation & 1) * (n + 1) + static_cast<std::size_t>(rank);
  return memory_.data() + lines_of(ranks_) + number * block_;
}

std::byte* ArenaLayout::result(std::uint64_t generation) const noexcept {
  return slot(generation, ranks_);
}

std::byte* ArenaLayout::shelf(std::size_t number, int rank) const noexcept {
  const std::size_t place =
      number * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank);
  return slot(1, ranks_) + block_ + place * shelf_bytes(block_);
}

std::optional<PairRings> ArenaLayout::rings(int self) const noexcept {
  if (ranks_ > kMostRanksWithRings) return std::nullopt;
  return PairRings(memory_.subspan(rings_at(ranks_, block_)), ranks_, self);
}

std::optional<CallSignature> ArenaLayout::published(int rank, std::uint64_t call) const noexcept {
  const ArenaLine::Published& entry = line(rank).calls[call % kKnownCalls];
  // acquire: pairs with the last store of publish(), so that the parts are those of this call
  if (entry.published.load(std::memory_order_acquire) != call + 1) return std::nullopt;
  std::array<std::uint64_t, kSignatureParts> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = entry.signature[i].load(std::memory_order_relaxed);
  }
  // acquire fence: pairs with the fence of publish(); a torn signature is seen by its number
  std::atomic_thread_fence(std::memory_order_acquire);
  if (entry.published.load(std::memory_order_relaxed) != call + 1) return std::nullopt;
  return std::bit_cast<CallSignature>(parts);
}

}  // namespace gdrx::exec
