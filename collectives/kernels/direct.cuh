// SPDX-License-Identifier: Apache-2.0
// Direct: rank r reads the r-th n-th of every rank's input where it lies, and writes the sum into
// every rank's output. No slot, no copy; the price is a meeting at each end. For memory that all
// ranks registered together.
#pragma once

#include "collectives/kernels/exchange.cuh"

namespace gdrx::gpu {

/// In place is right: a pack is read and written by one thread alone, of all ranks.
template <class E, int kUnroll, int kPeers>
__global__ void __launch_bounds__(kThreads / 2, 2) direct(const __grid_constant__ DirectCall call) {
  begin<false>();
  WaitGuard guard(call);
  const Entry entry = entry_barrier(call, true, guard);
  advance_epoch(call, entry, false);  // no slot is used
  // Whoever gave up may hold other places than the peers do: touch nothing.
  if (guard.expired()) return;
  const std::uint64_t packs = packs_of(call.bytes);
  const std::uint64_t part = (packs + call.ranks - 1) / call.ranks;
  const std::uint64_t begin = part * call.rank;
  const std::uint64_t end = begin + part < packs ? begin + part : packs;
  const std::uint32_t threads = gridDim.x * blockDim.x;
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const UserBuffer input(call.input, call.bytes);
  for (std::uint64_t first = begin + thread; first < end; first += kUnroll * threads) {
    Batch<kUnroll, kPeers> batch;
    Pack mine[kUnroll];
#pragma unroll
    for (int peer = 0; peer < kPeers; ++peer) {
      if (peer >= call.ranks - 1) break;
      const UserBuffer theirs(call.inputs[batch.rank_of(call, peer)], call.bytes);
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        const std::uint64_t pack = first + static_cast<std::uint64_t>(i) * threads;
        if (pack < end) batch.packs[i][peer] = theirs.load(pack);
      }
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const std::uint64_t pack = first + static_cast<std::uint64_t>(i) * threads;
      if (pack < end) mine[i] = input.load(pack);
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const std::uint64_t pack = first + static_cast<std::uint64_t>(i) * threads;
      if (pack >= end) continue;
      const Pack sum = batch.template reduce<E>(call, i, mine[i]);
      for (int step = 0; step < call.ranks; ++step) {
        const int to = rank_above(call, step);
        UserBuffer(call.outputs[to], call.bytes).store(pack, sum);
      }
    }
  }
  exit_barrier(call, entry, guard);
}

}  // namespace gdrx::gpu
