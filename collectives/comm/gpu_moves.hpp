// SPDX-License-Identifier: Apache-2.0
// Which kernels carry which collective on GPUs of one host, and what a call that moves bytes takes
// from whom to whom. Pure.
#pragma once

#include <vector>

#include "collectives/comm/call.hpp"
#include "collectives/gpu/path.hpp"

namespace gdrx {

/// By a kernel of allReduce: all add up one vector, and some get the sums.
constexpr bool by_all_reduce(Collective collective) noexcept {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter_v || collective == Collective::barrier;
}
/// By one of its halves.
constexpr bool by_blocks(Collective collective) noexcept {
  return collective == Collective::reduce_scatter || collective == Collective::all_gather;
}
/// Whether one kernel does it: bytes go from ranks to ranks, and nothing is added but where they
/// arrive.
bool by_moves(Collective collective) noexcept;

/// Whether such a kernel carries the call: also a reduce that is faster so than by one of
/// allReduce, unless an algorithm is `fixed`.
bool goes_by_moves(const Call& call, bool fixed, int ranks) noexcept;

/// A buffer of which this rank has no byte to move is null.
gpu::Moves moves_of(const Call& call, Rank self, int ranks);

/// Whether its buffers are GPU memory: the same on every rank, as all give buffers of one kind. Who
/// has no byte in a call of the others goes by the buffers that he gives all the same, else by his
/// stream, else by whether his last call was a GPU's.
bool moves_on_gpu(const Call& call, Rank self, int ranks, bool last_was_gpu,
                  const Buffers& buffers = {});

/// Whether a broadcast of so many bytes is faster in pieces than from the root to all: the root
/// gives each rank a piece, which passes it on while it comes, or in a second step.
bool passes_on(Bytes bytes, int ranks) noexcept;
bool scatters_first(Bytes bytes, int ranks) noexcept;
/// The one step, or the two.
std::vector<gpu::Moves> broadcast_in_pieces(const Call& call, Rank self, int ranks);

}  // namespace gdrx
