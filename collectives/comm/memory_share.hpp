// SPDX-License-Identifier: Apache-2.0
// Ranks of one host come to the memory that they share, all or nobody.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/comm/hello.hpp"
#include "collectives/comm/heritage.hpp"
#include "collectives/exec/arena_seat.hpp"
#include "transport/bootstrap/control_mesh.hpp"
#include "transport/shm/common.hpp"

namespace gdrx {

/// The memory of a communicator's ranks.
struct HostMemory {
  std::shared_ptr<shm::Segment> segment;  // null: nobody has it
  std::span<std::byte> arena;             // its first bytes
  std::optional<exec::ArenaSeat> seat;    // in the arena
  std::vector<ProcessTicket> processes;   // by rank, where they may be written and read
  WriteGate gate;                         // through which they come into this one
};
struct MemoryOffer {
  std::shared_ptr<shm::Segment> own;  // of rank 0
  std::size_t bytes = 0;              // that it has
  bool one_host = false;
};
struct SharedMemory {
  std::shared_ptr<shm::Segment> segment;  // nobody has it, or all have
  std::string why_not;
};
/// Collective over the mesh, but where the ranks share memory already: then it is an error if this
/// rank cannot map what the first has made.
Result<SharedMemory> share_memory(MemoryOffer offer, std::span<const Hello> peers,
                                  const Heritage& heritage, ControlMesh& mesh, Deadline deadline);

/// Nobody tells where his receive_ring is that is in the memory which all have.
void place_receive_rings(std::span<Hello> peers, const shm::CommonLayout& layout,
                         const ArenaTicket& memory);

/// Why ranks do not write each other's memory, the same on all; empty: they do. Collective, but
/// where that is known already.
Result<std::string> share_processes(std::span<const Hello> peers, const Heritage& heritage,
                                    ControlMesh& mesh, Deadline deadline);

}  // namespace gdrx
