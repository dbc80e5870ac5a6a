// SPDX-License-Identifier: Apache-2.0
// Ring: each rank feeds one neighbour, 2 (n - 1) steps. Who stands where: gpu/lowering.hpp. The
// most bytes a second where one flow runs faster than flows to all peers; narrow floats are rounded
// at every step.
#pragma once

#include "collectives/kernels/exchange.cuh"
#include "collectives/kernels/tiling.cuh"

namespace gdrx::gpu {

/// A tile is `kUnroll` packs of each n-th a thread; slots of a tile: step, pack, thread. A slot is
/// written again a tile later. Its writer has then seen what its reader sent after one of the two
/// fences below, and the slot was cleared before that fence.
template <class E, int kUnroll>
__device__ __forceinline__ void run_ring(const Call& call) {
  begin<false>();
  WaitGuard guard(call);
  const UserBuffer input(call.input, call.bytes);
  const Sums output(call);
  const std::uint32_t threads = blocks_of_call() * blockDim.x;
  const std::uint32_t thread = block_of_call() * blockDim.x + threadIdx.x;
  const int position = call.ring.position;
  std::uint8_t* const arena = call.arena[call.rank];
  std::uint8_t* const right = call.arena[call.ring.right];
  const Tiling tiling(call, kUnroll * threads);
  const auto at = [&](int i) { return static_cast<std::uint32_t>(i) * threads + thread; };
  // What the next tile begins with: on its way while the ranks meet, and while a tile ends.
  Pack own[kUnroll];
  const auto fetch = [&](std::uint32_t tile) {
    const Tile parts = tiling.tile(tile);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (parts.has(position, at(i))) own[i] = input.load(parts.place(position, at(i)));
    }
  };
  fetch(0);
  const Entry entry = entry_barrier(call, true, guard);
  advance_epoch(call, entry, true);
  // Every thread of a block goes through every tile: they fence together.
  for (std::uint32_t tile = 0; tile < tiling.tiles(); ++tile) {
    const Tile parts = tiling.tile(tile);
    int owner = position;
    for (int step = 0; step < 2 * call.ranks - 1; ++step) {
      const bool reducing = step < call.ranks;
      const bool sending = step < 2 * call.ranks - 2;
      Pack mine[kUnroll];
      Pack packs_in[kUnroll];
      bool has[kUnroll];
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        has[i] = parts.has(owner, at(i));
        if (has[i] && reducing && step > 0) mine[i] = input.load(parts.place(owner, at(i)));
      }
      if (!sending && tile + 1 < tiling.tiles()) fetch(tile + 1);
      const auto slot = [&](int of_step, int i) {
        return static_cast<std::uint32_t>(of_step * kUnroll + i) * threads + thread;
      };
      if (step > 0) {
#pragma unroll
        for (int i = 0; i < kUnroll; ++i) {
          if (has[i]) packs_in[i] = load_shared(slot_of(arena, slot(step - 1, i)));
        }
#pragma unroll
        for (int i = 0; i < kUnroll; ++i) {
          if (!has[i]) continue;
          while (is_sentinel(packs_in[i]) &&
                 guard.keep_waiting(call.ring.left, reducing ? Stage::reducing : Stage::gathering,
                                    slot(step - 1, i))) {
            packs_in[i] = load_shared(slot_of(arena, slot(step - 1, i)));
          }
          packs_in[i] = take(arena, slot(step - 1, i), packs_in[i]);
        }
        guard.arrived();
      }
      const bool last_reduction = step == call.ranks - 1;
      if (last_reduction) block_fence();
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (!has[i]) continue;
        Pack value = step == 0 ? own[i] : packs_in[i];
        if (reducing && step > 0) {
          const Pack so_far = value;
          const Reduction how{call.type, call.op, last_reduction ? call.finish_over : 0};
          value = reduce_packs<E, 2>(how, 2, [&](int k) { return k == 0 ? so_far : mine[i]; });
        }
        if (sending && !guard.expired()) send(right, slot(step, i), value);
        if (step >= call.ranks - 1) output.store(parts.place(owner, at(i)), value);
      }
      owner = owner == 0 ? call.ranks - 1 : owner - 1;
    }
    block_fence();
  }
}

template <class E, int kUnroll>
__global__ void __launch_bounds__(kThreads / 2, 2) ring(const __grid_constant__ Call call) {
  run_ring<E, kUnroll>(call);
}

}  // namespace gdrx::gpu
