// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/memory_share.hpp"

#include <fmt/format.h>

#include "transport/bootstrap/text.hpp"

namespace gdrx {
namespace {

Result<std::optional<Arena>> map_arena(ArenaOffer& offer, const ArenaTicket& ticket, Rank self) {
  if (ticket.pid == 0 || !offer.one_host) return fail(Errc::unsupported, "not offered");
  if (ticket.bytes != offer.bytes) return fail(Errc::protocol, "of another size");
  if (index(self) == 0) return std::move(offer.own);
  return std::optional<Arena>(GDRX_TRY(Arena::open(ticket)));
}

// The first trouble of any rank; empty: there is none.
Result<std::string> trouble_of_any(const std::string& mine, ControlMesh& mesh, Deadline deadline) {
  for (const Blob& answer : GDRX_TRY(mesh.all_gather(std::as_bytes(std::span(mine)), deadline))) {
    if (!answer.empty()) return printable(answer);
  }
  return std::string();
}

}  // namespace

Result<SharedArena> share_arena(ArenaOffer offer, std::span<const Hello> peers,
                                const Heritage& heritage, ControlMesh& mesh, Deadline deadline) {
  const ArenaTicket& ticket = peers[0].arena;
  auto mapped = map_arena(offer, ticket, mesh.rank());
  std::string trouble = mapped ? "" : describe(mapped.error());
  if (!heritage.memory) {
    trouble = GDRX_TRY(trouble_of_any(trouble, mesh, deadline));
  } else if (!mapped && ticket.pid != 0) {
    return tl::unexpected(mapped.error());
  }
  if (!trouble.empty()) return SharedArena{std::nullopt, trouble};
  return SharedArena{*std::move(mapped), {}};
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
