// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/hierarchy.hpp"

#include <fmt/format.h>

namespace gdrx {
namespace {

// Small enough that the first and the last piece, whose copies nothing hides, are a small share;
// large enough that a piece's latencies are.
constexpr std::uint64_t kLeastPart = 512 << 10;
constexpr std::uint64_t kPiecesWanted = 8;
constexpr std::uint64_t kPartAlignment = 16;

std::uint64_t round_up(std::uint64_t value) {
  return (value + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

}  // namespace

Result<Hierarchy> hierarchy_of(std::span<const std::string> host_ids, Rank self) {
  std::vector<std::string> hosts;
  std::vector<std::vector<Rank>> ranks;
  Hierarchy result;
  for (std::size_t rank = 0; rank < host_ids.size(); ++rank) {
    const auto found = std::find(hosts.begin(), hosts.end(), host_ids[rank]);
    const auto host = static_cast<std::size_t>(found - hosts.begin());
    if (found == hosts.end()) {
      hosts.push_back(host_ids[rank]);
      ranks.emplace_back();
    }
    if (static_cast<std::int32_t>(rank) == index(self)) {
      result.own_host = static_cast<int>(host);
      result.local = static_cast<int>(ranks[host].size());
    }
    ranks[host].push_back(Rank{static_cast<std::int32_t>(rank)});
  }
  result.host = ranks[static_cast<std::size_t>(result.own_host)];
  for (const std::vector<Rank>& host : ranks) {
    if (host.size() != ranks[0].size()) {
      return fail(Errc::unsupported, fmt::format("the hosts have {} and {} ranks: they need as "
                                                 "many each",
                                                 ranks[0].size(), host.size()));
    }
    result.rail.push_back(host[static_cast<std::size_t>(result.local)]);
  }
  return result;
}

Hierarchy each_alone(int ranks, Rank self) {
  Hierarchy result;
  result.host = {self};
  for (int rank = 0; rank < ranks; ++rank) result.rail.push_back(Rank{rank});
  result.own_host = index(self);
  return result;
}

Pieces Pieces::cut(std::uint64_t bytes, int ranks, std::uint64_t most) noexcept {
  Pieces pieces;
  pieces.bytes = bytes;
  pieces.ranks = static_cast<std::uint64_t>(ranks);
  const std::uint64_t whole = (bytes + pieces.ranks - 1) / pieces.ranks;
  const std::uint64_t wanted =
      std::clamp((whole + kPiecesWanted - 1) / kPiecesWanted, kLeastPart, most);
  pieces.part = std::max(kPartAlignment, round_up(std::min(whole, wanted)));
  return pieces;
}

Pieces::Piece Pieces::piece(std::uint64_t number) const noexcept {
  Piece piece;
  piece.begin = number * part * ranks;
  piece.bytes = std::min(part * ranks, bytes - piece.begin);
  piece.part = std::min(part, round_up((piece.bytes + ranks - 1) / ranks));
  return piece;
}

}  // namespace gdrx
