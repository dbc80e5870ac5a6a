// SPDX-License-Identifier: Apache-2.0
// What a kernel's call is, in two words that its peers compare with theirs: ranks that call
// different things are named, and not left to wait or to add what does not belong together.
#pragma once

#include <cstdint>

#include "collectives/kernels/call.hpp"
#include "collectives/kernels/moves.hpp"
#include "collectives/kernels/shape.hpp"
#include "gdrx/types.hpp"

namespace gdrx::gpu {

struct Moves;

/// Call::signature of a call that is one kernel of this shape. `place`: of its buffers, where the
/// kernel is direct, else 0. `collective`, `root`: where a kernel of
/// allReduce does another's.
std::uint64_t signature_of(const Call& call, const Shape& shape, std::uint64_t place,
                           Collective collective = Collective::all_reduce, Rank root = {});
/// Of one that is a relay.
std::uint64_t signature_of_relay(const Call& call);
/// Of one that moves bytes. How many, each pair of ranks compares by itself.
std::uint64_t signature_of_move(const MoveCall& call, const Moves& what);
/// The first word of a message's header; its second are its bytes.
std::uint64_t signature_of_message(DataType type);

/// As people read it.
struct Called {
  Collective collective{};
  DataType type{};
  ReduceOp op{};
  std::int32_t root = 0;
  std::uint64_t bytes = 0;   // of a move: from the one that is called `theirs` to the other
  std::uint64_t kernel = 0;  // a Kernel, or what stands for a relay, a move or a message
  bool moves = false;        // it is one of these
  bool message = false;      // or one of these
  friend bool operator==(const Called&, const Called&) = default;
};
/// Of two words that a peer wrote: what is out of range becomes 0.
Called called_of(const Pack& words);

}  // namespace gdrx::gpu
