// SPDX-License-Identifier: Apache-2.0
// Double binary tree: half of the vector goes up and down one tree, half the other; a rank that is
// inner in one is a leaf in the other. 2 log2(n) latencies, about 2 S out of each GPU. Narrow
// floats are rounded at every step. Who stands where: gpu/lowering.hpp.
#pragma once

#include "collectives/kernels/exchange.cuh"

namespace gdrx::gpu {

/// What a block of one tree works on: kUnroll packs a thread and tile, and the slots that a rank's
/// neighbours in that tree write, two sets of them.
class Branches {
 public:
  static constexpr int kFromParent = 2;  // 0 and 1: from the children

  __device__ __forceinline__ Branches(const Call& call, int unroll)
      : tree_(block_of_call() % 2),
        threads_(blocks_of_call() / 2 * blockDim.x),
        thread_(block_of_call() / 2 * blockDim.x + threadIdx.x),
        width_(static_cast<std::uint32_t>(unroll) * threads_) {
    const std::uint64_t packs = packs_of(call.bytes);
    half_ = (packs + 1) / 2;
    begin_ = tree_ * half_;
    end_ = tree_ == 0 ? half_ : packs;
  }
  __device__ __forceinline__ std::uint32_t tree() const { return tree_; }
  __device__ __forceinline__ std::uint32_t tiles() const {
    return static_cast<std::uint32_t>((half_ + width_ - 1) / width_);
  }
  __device__ __forceinline__ std::uint64_t place(std::uint32_t tile, int i) const {
    return begin_ + std::uint64_t{tile} * width_ + at(i);
  }
  __device__ __forceinline__ bool has(std::uint32_t tile, int i) const {
    return place(tile, i) < end_;
  }
  __device__ __forceinline__ std::uint32_t slot(std::uint32_t tile, int from, int i) const {
    return ((tile % 2 * 3 + static_cast<std::uint32_t>(from)) * 2 + tree_) * width_ + at(i);
  }

 private:
  __device__ __forceinline__ std::uint32_t at(int i) const {
    return static_cast<std::uint32_t>(i) * threads_ + thread_;
  }

  std::uint32_t tree_, threads_, thread_, width_;
  std::uint64_t half_, begin_, end_;
};

/// While a tile comes down the next goes up. Slots are written again two tiles later. Of those that
/// children write: a child has then received what came down for the first tile, which was sent
/// after the fence that followed their clearing. Of those that the parent writes: it has then
/// received what went up for the second tile, sent after such a fence, too.
template <class E, int kUnroll>
__device__ __forceinline__ void run_tree(const Call& call) {
  begin<false>();
  WaitGuard guard(call);
  const UserBuffer input(call.input, call.bytes);
  const Sums output(call);
  const Branches branches(call, kUnroll);
  const TreePlace& node = call.trees[branches.tree()];
  std::uint8_t* const arena = call.arena[call.rank];

  const auto receive = [&](std::uint32_t tile, int from, int rank, Stage stage,
                           Pack(&packs)[kUnroll]) {
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (branches.has(tile, i)) {
        packs[i] = load_shared(slot_of(arena, branches.slot(tile, from, i)));
      }
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (!branches.has(tile, i)) continue;
      const std::uint32_t slot = branches.slot(tile, from, i);
      while (is_sentinel(packs[i]) && guard.keep_waiting(rank, stage, slot)) {
        packs[i] = load_shared(slot_of(arena, slot));
      }
      packs[i] = take(arena, slot, packs[i]);
    }
    guard.arrived();
  };
  const auto send_to = [&](int rank, std::uint32_t tile, int from, const Pack(&packs)[kUnroll]) {
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (branches.has(tile, i) && !guard.expired()) {
        send(call.arena[rank], branches.slot(tile, from, i), packs[i]);
      }
    }
  };
  const auto up = [&](std::uint32_t tile, Pack(&sums)[kUnroll]) {
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (branches.has(tile, i)) sums[i] = input.load(branches.place(tile, i));
    }
#pragma unroll
    for (int branch = 0; branch < 2; ++branch) {
      if (node.children[branch] < 0) break;
      const bool last = branch == 1 || node.children[1] < 0;
      const bool complete = node.parent < 0 && last;
      Pack theirs[kUnroll];
      receive(tile, branch, node.children[branch], Stage::reducing, theirs);
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (!branches.has(tile, i)) continue;
        const Reduction how{call.type, call.op, complete ? call.finish_over : 0};
        sums[i] = reduce_packs<E, 2>(how, 2, [&](int k) { return k == 0 ? sums[i] : theirs[i]; });
      }
    }
    if (node.parent >= 0) send_to(node.parent, tile, node.branch, sums);
  };
  const auto down = [&](std::uint32_t tile, Pack(&results)[kUnroll]) {
    if (node.parent >= 0) {
      receive(tile, Branches::kFromParent, node.parent, Stage::gathering, results);
    }
#pragma unroll
    for (int branch = 0; branch < 2; ++branch) {
      if (node.children[branch] < 0) break;
      send_to(node.children[branch], tile, Branches::kFromParent, results);
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (branches.has(tile, i)) output.store(branches.place(tile, i), results[i]);
    }
  };

  const Entry entry = entry_barrier(call, true, guard);
  advance_epoch(call, entry, true);
  const std::uint32_t tiles = branches.tiles();
  Pack now[kUnroll]{};
  up(0, now);
  // Every thread of a block goes through every tile: they fence together.
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    Pack next[kUnroll]{};
    block_fence();
    if (tile + 1 < tiles) up(tile + 1, next);
    down(tile, now);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) now[i] = next[i];
  }
}

template <class E, int kUnroll>
__global__ void __launch_bounds__(kThreads / 2, 2) tree(const __grid_constant__ Call call) {
  run_tree<E, kUnroll>(call);
}

}  // namespace gdrx::gpu
