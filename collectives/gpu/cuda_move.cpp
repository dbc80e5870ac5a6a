// SPDX-License-Identifier: Apache-2.0
// From what goes between the ranks to a kernel of moves.
#include <algorithm>

#include "collectives/gpu/cuda_path.hpp"
#include "collectives/gpu/error.hpp"
#include "collectives/gpu/on_device.hpp"
#include "collectives/gpu/signature.hpp"
#include "collectives/kernels/launch.hpp"

namespace gdrx::gpu {

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
  MoveCall call;
  static_cast<Call&>(call) = call_;
  call.input = what.input;
  call.output = what.output;
  call.timeout_ns = timeout_of(what.timeout);
  call.channels = channels_of(call_.ranks, blocks);
  std::uint32_t grid = 1;
  for (int rank = 0; rank < call_.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    call.sends[rank] = move_of(what.sends[at], call.channels);
    call.receives[rank] = move_of(what.receives[at], call.channels);
    for (const Move& run : {call.sends[rank], call.receives[rank]}) {
      grid = std::max(grid, run.channels);
      if (rank != call_.rank) call.tiles = std::max(call.tiles, run.tiles());
    }
  }
  call.type = static_cast<std::int32_t>(what.type);
  call.op = what.adds ? static_cast<std::int32_t>(*what.adds) : 0;
  if (what.adds == ReduceOp::avg) call.finish_over = call_.ranks;
  call.signature = signature_of_move(call, what.collective, what.root);
  const LaunchMove launch = what.adds ? add_of(what.type) : launch_move;
  return check(launch(call, static_cast<int>(grid), to), "kernel launch");
}

}  // namespace gdrx::gpu
