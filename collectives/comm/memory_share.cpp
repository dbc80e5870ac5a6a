// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/memory_share.hpp"
#include "base/printable.hpp"

#include <fmt/format.h>

namespace gdrx {
namespace {

Result<std::shared_ptr<shm::Segment>> map_memory(MemoryOffer& offer, const ArenaTicket& ticket,
                                                 Rank self) {
  if (ticket.pid == 0 || !offer.one_host) return fail(Errc::unsupported, "not offered");
  if (ticket.bytes != offer.bytes) return fail(Errc::protocol, "of another size");
  if (index(self) == 0) return std::move(offer.own);
  return shm::Segment::open(ticket);
}

// The first trouble of any rank; empty: there is none.
Result<std::string> trouble_of_any(const std::string& mine, ControlMesh& mesh, Deadline deadline) {
  for (const Blob& answer : GDRX_TRY(mesh.all_gather(std::as_bytes(std::span(mine)), deadline))) {
    if (!answer.empty()) return printable(answer);
  }
  return std::string();
}

}  // namespace

Result<SharedMemory> share_memory(MemoryOffer offer, std::span<const Hello> peers,
                                  const Heritage& heritage, ControlMesh& mesh, Deadline deadline) {
  const ArenaTicket& ticket = peers[0].memory;
  auto mapped = map_memory(offer, ticket, mesh.rank());
  std::string trouble = mapped ? "" : describe(mapped.error());
  if (!heritage.memory) {
    trouble = GDRX_TRY(trouble_of_any(trouble, mesh, deadline));
  } else if (!mapped) {
    return tl::unexpected(mapped.error());
  }
  if (!trouble.empty()) return SharedMemory{nullptr, trouble};
  return SharedMemory{*std::move(mapped), {}};
}

void place_receive_rings(std::span<Hello> peers, const shm::CommonLayout& layout,
                         const ArenaTicket& memory) {
  for (std::size_t rank = 0; rank < peers.size(); ++rank) {
    const Rank peer{static_cast<std::int32_t>(rank)};
    peers[rank].device_address = layout.address(memory, peer);
    peers[rank].receive_ring_key = layout.region_key(memory, peer);
  }
}

// Each tries every other one, as containers, users and yama differ by direction.
Result<std::string> share_processes(std::span<const Hello> peers, const Heritage& heritage,
                                    ControlMesh& mesh, Deadline deadline) {
  for (std::size_t rank = 0; rank < peers.size(); ++rank) {
    if (peers[rank].process.pid == 0) return fmt::format("rank {} does not offer it", rank);
  }
  std::string trouble;
  if (heritage.processes) return trouble;
  for (std::size_t rank = 0; rank < peers.size() && trouble.empty(); ++rank) {
    if (auto tried = try_process(peers[rank].process); !tried) {
      trouble = fmt::format("rank {} writing rank {}: {}", index(mesh.rank()), rank,
                            describe(tried.error()));
    }
  }
  return trouble_of_any(trouble, mesh, deadline);
}

}  // namespace gdrx
