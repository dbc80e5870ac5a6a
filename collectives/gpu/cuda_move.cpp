// SPDX-License-Identifier: Apache-2.0
// From what goes between the ranks to a kernel of moves.
#include <algorithm>
#include <optional>

#include "collectives/gpu/cuda_path.hpp"
#include "collectives/gpu/error.hpp"
#include "collectives/gpu/moved.hpp"
#include "collectives/gpu/on_device.hpp"
#include "collectives/gpu/signature.hpp"
#include "collectives/kernels/launch.hpp"

namespace gdrx::gpu {

Result<void> CudaPath::move(const Moves& what, int blocks, void* stream) {
  const OnDevice here(device_);
  auto* const to = static_cast<cudaStream_t>(stream);
  Last* const last = GDRX_TRY(follow(to));
  if (call_.ranks == 1) {
    if (what.sends[0].bytes == 0) return {};
    return copy(static_cast<const std::uint8_t*>(what.input) + what.sends[0].at,
                static_cast<std::uint8_t*>(what.output) + what.receives[0].at, what.sends[0].bytes,
                *last);
  }
  MoveCall call;
  static_cast<Call&>(call) = call_;
  call.input = what.input;
  call.output = what.output;
  call.timeout_ns = timeout_of(what.timeout);
  call.channels = channels_of(call_.ranks, blocks);
  int grid = 1;
  call.type = static_cast<std::int32_t>(what.type);
  call.op = what.adds ? static_cast<std::int32_t>(*what.adds) : 0;
  call.finish_over = what.adds == ReduceOp::avg ? call_.ranks : 0;  // call_ has that of a launch
  call.signature = signature_of_move(call, what);
  call.op = static_cast<std::int32_t>(added_by(static_cast<ReduceOp>(call.op)));
  std::optional<MovedMessages> large;  // 4 KiB, which a small call need not fill
  const std::uint64_t least = least_in_bulk(what, call_.ranks, call_.rank, blocks);
  if (has_messages(what, call_.ranks, call_.rank, least))
    large = messages_of_move(what, call, least, blocks);
  bool small = false;
  for (int rank = 0; rank < call_.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const bool own = rank == call_.rank;
    const auto laid_out = [&](const Run& run) {
      if (own ? large.has_value() : goes_as_message(what, run, least))
        return Move{run.at, run.bytes};
      if (!own && run.bytes > 0) small = true;
      return move_of(run, call.channels);
    };
    call.sends[rank] = laid_out(what.sends[at]);
    call.receives[rank] = laid_out(what.receives[at]);
    for (const Move& run : {call.sends[rank], call.receives[rank]}) {
      grid = std::max(grid, static_cast<int>(run.channels));
      if (!own) call.tiles = std::max(call.tiles, run.tiles());
    }
  }
  if (!large || small) GDRX_TRY(launch_in_slots(call, what.adds.has_value(), grid, *last));
  if (!large) return {};
  PairGrid shape = grid_of_moved(*large, blocks);
  const int taken = take_share(shape.blocks, least_blocks_of_moved(*large), *last).blocks;
  if (taken < shape.blocks) shape = grid_of_moved(*large, taken);
  return check(enqueue_moved(*large, !small, shape, to), "kernel launch");
}

Result<void> CudaPath::launch_in_slots(const MoveCall& call, bool adds, int blocks, Last& last) {
  const int taken = take_share(blocks, 1, last).blocks;
  if (taken < blocks) {
    return check(launch_move_in_turns(call, adds, blocks, taken, last.stream), "kernel launch");
  }
  const LaunchMove launch = adds ? add_of(call) : launch_move;
  return check(launch(call, blocks, last.stream), "kernel launch");
}

}  // namespace gdrx::gpu
