// SPDX-License-Identifier: Apache-2.0
// The kernels, as the host launches them.
#pragma once

#include <cuda_runtime_api.h>

#include "collectives/kernels/moved_messages.hpp"
#include "collectives/kernels/pairs.hpp"
#include "collectives/kernels/shape.hpp"
#include "gdrx/types.hpp"

namespace gdrx::gpu {

/// Enqueues; nothing waits. The result is the CUDA runtime's.
using Launch = cudaError_t (*)(const Call& call, const Shape& shape, cudaStream_t stream);

/// By type, operator and number of ranks: see type_sets.hpp.
Launch launch_of(const Call& call);

/// Of any element type.
cudaError_t launch_all_gather(const Call& call, const Shape& shape, cudaStream_t stream);

/// `blocks`: the most channels of any run.
using LaunchMove = cudaError_t (*)(const MoveCall& call, int blocks, cudaStream_t stream);
cudaError_t launch_move(const MoveCall& call, int blocks, cudaStream_t stream);
/// Its large runs.
cudaError_t launch_moved(const MovedMessages& call, const PairGrid& grid, cudaStream_t stream);
/// Of moves of one length that add up what comes: see add.cuh.
LaunchMove add_of(const MoveCall& call);

/// The two above in turns, by so many blocks of the GPU, fewer than the call has: see turns.cuh.
cudaError_t launch_in_turns(const Call& call, const Shape& shape, int launched,
                            cudaStream_t stream);
cudaError_t launch_move_in_turns(const MoveCall& call, bool adds, int blocks, int launched,
                                 cudaStream_t stream);

/// What goes between this rank and others: see pair.cuh.
cudaError_t launch_pairs(const PairCall& call, const PairGrid& grid, cudaStream_t stream);
/// It, and launch_moved(), by so few blocks that a warp has more than kPairTurns channels. Of a
/// MovedMessages at most kPairWarps relays a block.
cudaError_t launch_pairs_in_turns(const PairCall& call, int launched, cudaStream_t stream);
cudaError_t launch_moved_in_turns(const MovedMessages& call, int launched, cudaStream_t stream);
/// Into the arena of `call`'s rank, ahead of a launch whose messages lie there.
cudaError_t launch_messages(const MessageBatch& batch, const Call& call, cudaStream_t stream);

/// Empties an arena for its next owner: else zeroes before the slots, a sentinel in each slot.
/// Enqueues.
cudaError_t clear_arena(std::uint8_t* arena, std::uint32_t owner, cudaStream_t stream);

}  // namespace gdrx::gpu
