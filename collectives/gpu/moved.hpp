// SPDX-License-Identifier: Apache-2.0
// The runs of a move that are large enough to go as messages do.
#pragma once

#include <cuda_runtime_api.h>

#include "collectives/gpu/path.hpp"
#include "collectives/kernels/moved_messages.hpp"

namespace gdrx::gpu {

/// The least run of a call that goes so. Of two ranks, which know the same lengths, both directions
/// go in bulk where one has to.
std::uint64_t least_in_bulk(const Moves& what, int ranks, int self, int blocks) noexcept;

/// Whether a run between two ranks goes so: they decide alike. `least`: of the call.
bool goes_as_message(const Moves& what, const Run& run, std::uint64_t least) noexcept;

/// Whether any of a call does, of this rank.
bool has_messages(const Moves& what, int ranks, int self, std::uint64_t least) noexcept;

/// What of a call goes so. `entered`: the call as peers see it, with its
/// signature, buffers and timeout. `least`: of the call.
MovedMessages messages_of_move(const Moves& what, const Call& entered, std::uint64_t least,
                               int blocks);

/// Over at most so many blocks.
PairGrid grid_of_moved(const MovedMessages& call, int blocks) noexcept;
/// Fewer have no warp for each of the channels that it passes on.
int least_blocks_of_moved(const MovedMessages& call) noexcept;

/// Enqueues. `alone`: all that the rank gives and gets goes so; else a kernel that enters the call
/// is ahead of it.
cudaError_t enqueue_moved(MovedMessages& call, bool alone, const PairGrid& grid,
                          cudaStream_t stream);

}  // namespace gdrx::gpu
