// SPDX-License-Identifier: Apache-2.0
// How a call is laid over blocks, threads and slots. Pure; the same on every rank.
#pragma once

#include <cstdint>

#include "collectives/kernels/call.hpp"

namespace gdrx::gpu {

/// direct: all_reduce that reads and writes the peers' own buffers, where all have registered them.
enum class Kernel : std::uint8_t {
  one_shot,
  two_shot,
  ring,
  reduce_scatter,
  all_gather,
  direct,
  tree
};

/// Packs of a block a thread and tile, of the kernels whose blocks are given.
constexpr int unroll_of_blocks(int ranks) noexcept { return ranks <= 2 ? 4 : ranks <= 4 ? 2 : 1; }

struct Shape {
  Kernel kernel{};
  int blocks = 1;
  int threads = 32;    // of a block that move data; at most widest_block()
  int unroll = 1;      // packs of each n-th (tree: half) a thread and tile: 1, 2 or 4
  bool whole = false;  // uses the whole arena: enters by a barrier
  bool tiled = false;  // one_shot, two ranks: tile after tile
  bool early = true;   // may be set up before the kernel ahead of it in the stream ends, if light
};

/// A tiny kernel lets the next one in before it has waited for the one ahead, and so on along the
/// stream: see EarlyStarts.
constexpr bool is_tiny(std::uint32_t threads_of_grid) noexcept { return threads_of_grid <= 512; }

/// Peers that a kernel of a hot type is compiled for, or one-shot of any.
constexpr int peers_of(int ranks) noexcept {
  return ranks <= 2 ? 1 : ranks <= 4 ? 3 : ranks <= 8 ? 7 : 15;
}

/// Light kernels need at most 64 registers a thread, all others 128 (their launch bounds): a
/// multiprocessor holds 1024 threads of a light kernel, or 512 of another. With `budget`
/// multiprocessors for a communicator, a kernel of at most budget x 512 threads that is light
/// leaves room for the one that follows it in the stream: that one is set up early. Any other is
/// alone. So a communicator never takes more than its budget.
constexpr bool is_light(int unroll, int peers) noexcept { return unroll * peers <= 3; }
constexpr bool is_light(const Shape& shape, int ranks) noexcept {
  if (shape.kernel == Kernel::one_shot) return !shape.tiled && peers_of(ranks) <= 7;
  return shape.kernel == Kernel::two_shot && !shape.whole &&
         is_light(shape.unroll, peers_of(ranks));
}

/// Threads of a block. Never more than half a multiprocessor: whatever blocks of one communicator
/// are spread over the GPU, there is room for one of the next.
constexpr int widest_block(const Shape& shape, int ranks) noexcept {
  return is_light(shape, ranks) ? kThreads : kThreads / 2;
}

constexpr std::uint64_t packs_of(std::uint64_t bytes) noexcept {
  return (bytes + sizeof(Pack) - 1) / sizeof(Pack);
}

/// Whether the kernel may run so: its slots fit into the arena, or into the half that a call gets.
/// `packs`: of the vector; reduce_scatter and all_gather: of a block.
constexpr bool fits(const Shape& shape, int ranks, std::uint64_t packs) noexcept {
  const auto n = static_cast<std::uint64_t>(ranks);
  const auto unroll = static_cast<std::uint64_t>(shape.unroll);
  const auto threads =
      static_cast<std::uint64_t>(shape.blocks) * static_cast<std::uint64_t>(shape.threads);
  if (ranks < 1 || ranks > kMaxRanks || shape.blocks < 1) return false;
  if (shape.threads < 32 || shape.threads % 32 != 0) return false;
  if (shape.threads > widest_block(shape, ranks)) return false;
  switch (shape.kernel) {
    case Kernel::one_shot:
      if (shape.whole) return false;
      if (!shape.tiled) return (n - 1) * packs <= kSlots / 2;
      if (shape.unroll > 2 || shape.blocks > kRoomBlocks) return false;  // 4 spills
      return ranks == 2 && 2 * unroll * threads <= kSlots / 2;
    case Kernel::two_shot: {
      if (shape.unroll > unroll_of_blocks(ranks)) return false;
      const std::uint64_t lane = unroll * threads;
      if (shape.whole) return 5 * (n - 1) * lane <= kSlots;
      return lane >= (packs + n - 1) / n && 2 * (n - 1) * lane <= kSlots / 2;
    }
    case Kernel::ring:
      return shape.whole && ranks > 1 && (2 * n - 2) * unroll * threads <= kSlots;
    case Kernel::tree:  // half of the blocks a tree; two sets of slots for three neighbours
      if (!shape.whole || ranks < 2 || shape.blocks % 2 != 0 || shape.unroll > 2) return false;
      return 2 * 3 * unroll * threads <= kSlots;
    case Kernel::reduce_scatter:
    case Kernel::all_gather: {
      if (shape.unroll != unroll_of_blocks(ranks)) return false;
      const std::uint64_t lane = unroll * threads;
      if (shape.whole) return 4 * (n - 1) * lane <= kSlots;
      return lane >= packs && (n - 1) * lane <= kSlots / 2;
    }
    case Kernel::direct:  // any size: it uses no slot
      return shape.whole && ranks > 1 && shape.blocks <= kMaxBlocks;
  }
  return false;
}

}  // namespace gdrx::gpu
