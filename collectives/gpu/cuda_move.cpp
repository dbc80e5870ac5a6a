// SPDX-License-Identifier: Apache-2.0
// From what goes between the ranks to a kernel of moves.
#include <algorithm>

#include "collectives/gpu/cuda_path.hpp"
#include "collectives/gpu/error.hpp"
#include "collectives/gpu/on_device.hpp"
#include "collectives/gpu/signature.hpp"
#include "collectives/kernels/launch.hpp"

namespace gdrx::gpu {

namespace {

// Who gives and gets at the same place must have read before it is written: a block does both.
bool is_in_place(const Moves& what, std::size_t peer) {
  const auto* const from = static_cast<const std::uint8_t*>(what.input) + what.sends[peer].at;
  const auto* const to = static_cast<std::uint8_t*>(what.output) + what.receives[peer].at;
  return from == to;
}

bool is_large(const Moves& what, const Run& run) {
  if (what.adds || run.bytes == 0) return false;
  return what.passes_on || run.bytes >= kLeastInBulk;
}

// What of a call goes in bulk. Sender and receiver of a run decide alike.
BulkCall in_bulk(const Moves& what, const Call& common) {
  BulkCall call;
  static_cast<Call&>(call) = common;
  call.bulk = bulk_channels_of(common.ranks);
  const bool passes_on = what.passes_on && common.rank != index(what.root);
  std::uint32_t task = 0;
  for (int step = 1; step < common.ranks; ++step) {
    const int peer = (common.rank + step) % common.ranks;
    const auto at = static_cast<std::size_t>(peer);
    const bool receives = is_large(what, what.receives[at]);
    if (!passes_on && is_large(what, what.sends[at])) {
      call.add(Bulk::send, peer, task, what.sends[at]);
      if (!receives || !is_in_place(what, at)) task += call.bulk.count;
    }
    if (!receives) continue;
    const bool from_root = passes_on && peer == index(what.root);
    call.add(from_root ? Bulk::pass_on : Bulk::receive, peer, task, what.receives[at]);
    task += call.bulk.count;
  }
  return call;
}

}  // namespace

Result<void> CudaPath::move(const Moves& what, int blocks, void* stream) {
  const OnDevice here(device_);
  auto* const to = static_cast<cudaStream_t>(stream);
  const Last* const last = GDRX_TRY(follow(to));
  if (call_.ranks == 1) {
    if (what.sends[0].bytes == 0) return {};
    return copy(static_cast<const std::uint8_t*>(what.input) + what.sends[0].at,
                static_cast<std::uint8_t*>(what.output) + what.receives[0].at, what.sends[0].bytes,
                *last);
  }
  BulkCall call = in_bulk(what, call_);
  call.input = what.input;
  call.output = what.output;
  call.timeout_ns = timeout_of(what.timeout);
  call.channels = channels_of(call_.ranks, blocks);
  std::uint32_t grid =
      std::clamp<std::uint32_t>(call.tasks, 1, static_cast<std::uint32_t>(std::max(blocks, 1)));
  for (int rank = 0; rank < call_.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const bool own = rank == call_.rank;
    const auto laid_out = [&](const Run& run) {
      const bool bulk = own ? call.runs_used > 0 : is_large(what, run);
      return bulk ? Move{run.at, run.bytes} : move_of(run, call.channels);
    };
    call.sends[rank] = laid_out(what.sends[at]);
    call.receives[rank] = laid_out(what.receives[at]);
    for (const Move& run : {call.sends[rank], call.receives[rank]}) {
      grid = std::max(grid, run.channels);
      if (!own) call.tiles = std::max(call.tiles, run.tiles());
    }
  }
  call.type = static_cast<std::int32_t>(what.type);
  call.op = what.adds ? static_cast<std::int32_t>(*what.adds) : 0;
  if (what.adds == ReduceOp::avg) call.finish_over = call_.ranks;
  call.signature = signature_of_move(call, what);
  call.op = static_cast<std::int32_t>(added_by(static_cast<ReduceOp>(call.op)));
  if (call.runs_used > 0) {
    return check(launch_bulk(call, static_cast<int>(grid), to), "kernel launch");
  }
  const LaunchMove launch = what.adds ? add_of(what.type) : launch_move;
  return check(launch(call, static_cast<int>(grid), to), "kernel launch");
}

}  // namespace gdrx::gpu
