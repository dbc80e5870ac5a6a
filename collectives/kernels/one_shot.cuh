// SPDX-License-Identifier: Apache-2.0
// One-shot: every rank sends its whole vector to all others and reduces all vectors itself. One
// latency; n - 1 times the bytes.
#pragma once

#include "collectives/kernels/exchange.cuh"

namespace gdrx::gpu {

/// Any grid.
template <class E, int kPeers>
__global__ void __launch_bounds__(kThreads, kPeers <= 7 ? 2 : 1)
    one_shot(const __grid_constant__ Call call) {
  Patience patience(call);
  const UserBuffer input(call.input, call.bytes);
  const UserBuffer output(call.output, call.bytes);
  const auto packs = static_cast<std::uint32_t>(packs_of(call.bytes));
  const std::uint32_t first = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t stride = gridDim.x * blockDim.x;
  const Peers<kPeers> peers(call, packs, 0);
  const Pack* const its = worked_out(input.place(first));
  const std::uint32_t has = worked_out(first < packs ? 1U : 0U);
  const std::uint32_t plain = worked_out(input.is_plain(first) ? 1U : 0U);
  const std::uint32_t words = worked_out(has != 0 ? input.words(first) : 0);
  const std::uint32_t words_out =
      worked_out(has != 0 && !output.is_plain(first) ? output.words(first) : 0);
  Control* const control = worked_out(control_of(call, call.rank));
  begin<kPeers <= 7>();
  Pack mine{};
  // On its way while the control page is read.
  if (plain != 0) {
    mine = *its;
  } else if (words != 0) {
    mine = input.load_words(first, words);
  } else if (has != 0) {
    mine = input.load(first);
  }
  const Entry entry = enter(call, control, false, patience);
  if (has != 0) peers.send_all(entry.half + first, mine);
  for (std::uint32_t pack = first + stride; pack < packs; pack += stride) {
    peers.send_all(entry.half + pack, input.load(pack));
  }
  book(call, entry, false);
  const std::uint32_t all = (1U << (call.ranks - 1)) - 1;
  for (std::uint32_t pack = first; pack < packs; pack += stride) {
    if (pack != first) mine = input.load(pack);
    Batch<1, kPeers> batch;
    const Places places{entry.half + pack, packs, 0};
    batch.receive(call, places, all, patience, Stage::reducing);
    const Pack sum = batch.template reduce<E>(call, 0, mine);
    if (words_out != 0 && pack == first) {
      output.store_words(first, words_out, sum);
    } else {
      output.store(pack, sum);
    }
    batch.clear(call, places, all);
  }
}

}  // namespace gdrx::gpu
