// SPDX-License-Identifier: Apache-2.0
// Ranks of one host come to the memory that they share, all or nobody.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "collectives/comm/hello.hpp"
#include "collectives/comm/heritage.hpp"
#include "transport/bootstrap/control_mesh.hpp"
#include "transport/memory/arena.hpp"

namespace gdrx {

struct ArenaOffer {
  std::optional<Arena> own;  // of rank 0
  std::size_t bytes = 0;     // that it has
  bool one_host = false;
};
struct SharedArena {
  std::optional<Arena> arena;  // nobody has it, or all have
  std::string why_not;
};
/// Collective over the mesh, but where the ranks share memory already: then it is an error if this
/// rank cannot map what the first has made.
Result<SharedArena> share_arena(ArenaOffer offer, std::span<const Hello> peers,
                                const Heritage& heritage, ControlMesh& mesh, Deadline deadline);

/// Why ranks do not write each other's memory, the same on all; empty: they do. Collective, but
/// where that is known already.
Result<std::string> share_processes(std::span<const Hello> peers, const Heritage& heritage,
                                    ControlMesh& mesh, Deadline deadline);

}  // namespace gdrx
