// SPDX-License-Identifier: Apache-2.0
// What a call that moves bytes takes from whom to whom on GPUs of one host. Pure.
#pragma once

#include <vector>

#include "collectives/comm/call.hpp"
#include "collectives/gpu/path.hpp"

namespace gdrx {

/// Whether one kernel does it: bytes go from ranks to ranks, and nothing is added but where they
/// arrive.
bool by_moves(Collective collective) noexcept;

/// Whether a reduce of GPU memory is faster so than by a kernel of allReduce.
bool reduces_by_moves(const Call& call, int ranks) noexcept;

/// A buffer of which this rank has no byte to move is null.
gpu::Moves moves_of(const Call& call, Rank self, int ranks);

/// Whether its buffers are GPU memory: the same on every rank, as all give buffers of one kind. Who
/// has no byte in a call of the others goes by the buffers that he gives all the same, else by his
/// stream, else by whether his last call was a GPU's.
bool moves_on_gpu(const Call& call, Rank self, int ranks, bool last_was_gpu);

/// Whether a broadcast of so many bytes is faster in two steps than from the root to all.
bool scatters_first(Bytes bytes, int ranks) noexcept;
/// The two: the root gives each rank a piece, and each rank its piece to all others.
std::array<gpu::Moves, 2> broadcast_in_pieces(const Call& call, Rank self, int ranks);

}  // namespace gdrx
