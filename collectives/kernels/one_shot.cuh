// SPDX-License-Identifier: Apache-2.0
// One-shot: every rank sends its whole vector to all others and reduces all vectors itself. One
// latency; n - 1 times the bytes.
#pragma once

#include "collectives/kernels/exchange.cuh"

namespace gdrx::gpu {

/// What a thread has of the vector: one to three words, which are all of it; a pack at an address
/// of its own, or nothing; or any number of them, of any alignment. A call is as long as its chain
/// of instructions: the first two have no loop and call nothing.
enum class Share { words, pack, any };

/// Any grid; with Share::pack a thread for each pack at least. Ranks may differ in theirs.
template <class E, int kPeers, Share kShare>
__global__ void __launch_bounds__(kThreads, kPeers <= 7 ? 2 : 1)
    one_shot(const __grid_constant__ Call call) {
  WaitGuard guard(call);
  const UserBuffer input(call.input, call.bytes);
  const Sums output(call);
  const Words in_words(call.input, call.bytes);
  const Words out_words(call.output, call.bytes);
  const auto packs = static_cast<std::uint32_t>(packs_of(call.bytes));
  const std::uint32_t first = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t stride = gridDim.x * blockDim.x;
  const Peers<kPeers> peers(call, packs, 0);
  const Pack* const its = worked_out(input.place(first));
  const std::uint32_t has = worked_out(first < packs ? 1U : 0U);
  const std::uint32_t plain = worked_out(input.is_plain(first) ? 1U : 0U);
  Control* const control = worked_out(control_of(call, call.rank));
  const Announcement announcement(call);
  begin<kPeers <= 7>();
  Pack mine{};
  // On its way while the control page is read.
  if constexpr (kShare == Share::words) {
    mine = in_words.load(has);
  } else if constexpr (kShare == Share::pack) {
    if (has != 0) mine = *its;
  } else {
    if (has != 0) mine = plain != 0 ? *its : input.load(first);
  }
  const Entry entry = entry_barrier(call, control, false, guard, announcement);
  if (has != 0 && !guard.expired()) peers.send_all(entry.half + first, mine);
  if constexpr (kShare == Share::any) {
    for (std::uint32_t pack = first + stride; pack < packs && !guard.expired(); pack += stride) {
      peers.send_all(entry.half + pack, input.load(pack));
    }
  }
  advance_epoch(call, entry, false);
  const std::uint32_t all = (1U << (call.ranks - 1)) - 1;
  for (std::uint32_t pack = first; pack < packs; pack += stride) {
    if (kShare == Share::any && pack != first) mine = input.load(pack);
    Batch<1, kPeers> batch;
    Watch watch(call, entry, pack == 0);
    const Places places{entry.half + pack, packs, 0};
    batch.receive(call, places, all, guard, Stage::reducing, watch);
    const Pack sum = batch.template reduce<E>(call, 0, mine);
    if constexpr (kShare == Share::words) {
      out_words.store(sum);
    } else if constexpr (kShare == Share::pack) {
      *output.place(pack) = sum;
    } else {
      output.store(pack, sum);
    }
    batch.clear(call, places, all);
    watch.settle(guard);
    if (kShare != Share::any) return;
  }
}

}  // namespace gdrx::gpu
