// SPDX-License-Identifier: Apache-2.0
// Ranks as hosts with the same number of ranks each, and a vector as pieces for them. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx {

/// Where one rank stands. Rank l of every host works on the l-th part of a piece: those ranks are a
/// rail, and talk to each other alone.
struct Hierarchy {
  std::vector<Rank> host;  // the ranks of this rank's host, in their order
  std::vector<Rank> rail;  // one of each host, hosts in the order of their first ranks
  int local = 0;           // this rank's place in `host`
  int own_host = 0;        // and in `rail`
};

/// `host_ids`: one a rank. Errc::unsupported: the hosts have different numbers of ranks.
Result<Hierarchy> hierarchy_of(std::span<const std::string> host_ids, Rank self);
/// Each rank as a host of its own: all of them are one rail, in their order.
Hierarchy each_alone(int ranks, Rank self);

/// A vector cut into pieces, and each piece into a part a rank of a host. Parts begin at multiples
/// of 16 bytes; the last ones of the last piece may be short or empty.
struct Pieces {
  std::uint64_t bytes = 0;
  std::uint64_t ranks = 1;  // of a host
  std::uint64_t part = 16;  // bytes of a part of every piece but the last

  struct Piece {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::uint64_t part = 0;
    std::uint64_t part_of(int rank) const noexcept {
      const std::uint64_t before = std::min(bytes, static_cast<std::uint64_t>(rank) * part);
      return std::min(part, bytes - before);
    }
  };

  static constexpr std::uint64_t kMostPart = 4 << 20;
  /// `most`: bytes of a part, at most.
  static Pieces cut(std::uint64_t bytes, int ranks, std::uint64_t most = kMostPart) noexcept;
  std::uint64_t count() const noexcept { return (bytes + part * ranks - 1) / (part * ranks); }
  Piece piece(std::uint64_t number) const noexcept;
};

}  // namespace gdrx
