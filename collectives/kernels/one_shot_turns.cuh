// SPDX-License-Identifier: Apache-2.0
// One-shot and direct as a turn does them: with the loops that carry any call, and no more. The
// kernels whose place they take are of another make for speed; what peers see is the same.
#pragma once

#include "collectives/kernels/exchange.cuh"

namespace gdrx::gpu {

/// See one_shot.cuh. There ranks may differ in their grids, as blocks that are all there wait for
/// each other in any order. In turns a thread has the packs of the call's own grid, as on all
/// ranks.
template <int kPeers>
__device__ __forceinline__ void run_one_shot(const Call& call) {
  WaitGuard guard(call);
  const UserBuffer input(call.input, call.bytes);
  const Sums output(call);
  const auto packs = static_cast<std::uint32_t>(packs_of(call.bytes));
  const std::uint32_t first = block_of_call() * blockDim.x + threadIdx.x;
  const std::uint32_t stride = blocks_of_call() * blockDim.x;
  const Entry entry =
      entry_barrier(call, control_of(call, call.rank), false, guard, Announcement(call));
  for (std::uint32_t pack = first; pack < packs && !guard.expired(); pack += stride) {
    send_all(call, packs, entry.half + pack, input.load(pack));
  }
  advance_epoch(call, entry, false);
  const std::uint32_t all = (1U << (call.ranks - 1)) - 1;
  for (std::uint32_t pack = first; pack < packs; pack += stride) {
    const Pack mine = input.load(pack);
    Batch<1, kPeers> batch;
    Watch watch(call, entry, pack == 0);
    const Places places{entry.half + pack, packs, 0};
    batch.receive(call, places, all, guard, Stage::reducing, watch);
    output.store(pack, batch.template reduce<Any>(call, 0, mine));
    batch.clear(call, places, all);
    watch.settle(guard);
  }
}

/// See direct.cuh.
template <int kPeers>
__device__ __forceinline__ void run_direct(const DirectCall& call) {
  WaitGuard guard(call);
  const Entry entry =
      entry_barrier(call, control_of(call, call.rank), true, guard, Announcement(call));
  advance_epoch(call, entry, false);
  if (guard.expired()) return;
  const std::uint64_t packs = packs_of(call.bytes);
  const std::uint64_t part = (packs + call.ranks - 1) / call.ranks;
  const std::uint64_t begin = part * call.rank;
  const std::uint64_t end = begin + part < packs ? begin + part : packs;
  const std::uint32_t threads = blocks_of_call() * blockDim.x;
  const std::uint32_t thread = block_of_call() * blockDim.x + threadIdx.x;
  const UserBuffer input(call.input, call.bytes);
  for (std::uint64_t pack = begin + thread; pack < end; pack += threads) {
    Batch<1, kPeers> batch;
    batch.each_of(call, [&](int i, int peer) {
      const UserBuffer theirs(call.inputs[batch.rank_of(call, peer)], call.bytes);
      batch.packs[i][peer] = theirs.load(pack);
    });
    const Pack sum = batch.template reduce<Any>(call, 0, input.load(pack));
    for (int step = 0; step < call.ranks; ++step) {
      UserBuffer(call.outputs[rank_above(call, step)], call.bytes).store(pack, sum);
    }
  }
  exit_barrier(call, entry, guard);
}

}  // namespace gdrx::gpu
