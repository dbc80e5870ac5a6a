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
  begin<kPeers <= 7>();
  Patience patience(call);
  const UserBuffer input(call.input, call.bytes);
  const UserBuffer output(call.output, call.bytes);
  const auto packs = static_cast<std::uint32_t>(packs_of(call.bytes));
  const std::uint32_t first = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t stride = gridDim.x * blockDim.x;
  Pack mine{};
  if (first < packs) mine = input.load(first);  // on its way while the control page is read
  const Entry entry = enter(call, false, patience);
  const Lanes lanes{entry.half, packs};
  if (first < packs) send_all(call, lanes, first, mine);
  for (std::uint32_t pack = first + stride; pack < packs; pack += stride) {
    send_all(call, lanes, pack, input.load(pack));
  }
  book(call, entry, false);
  for (std::uint32_t pack = first; pack < packs; pack += stride) {
    if (pack != first) mine = input.load(pack);
    Batch<1, kPeers> batch;
    batch.receive(
        call, lanes, [&](int) { return pack; }, [](int, int) { return true; }, patience,
        Stage::reducing);
    output.store(pack, batch.template reduce<E>(call, 0, mine));
  }
}

}  // namespace gdrx::gpu
