// SPDX-License-Identifier: Apache-2.0
// Which port of ours is joined with which of a peer's. Pure, and the same at both ends.
#pragma once

#include <optional>
#include <span>

#include "transport/verbs/wire.hpp"

namespace gdrx::verbs {

struct RailPair {
  std::uint8_t own = 0;
  std::uint8_t peer = 0;
};

struct Pairing {
  std::array<RailPair, kMaxRails> pairs{};
  std::size_t count = 0;

  /// The wire's form of one side: 4 bits a port pair.
  std::uint32_t own_word() const noexcept;
  std::uint32_t peer_word() const noexcept;
};

/// Both are known to be of one subnet, in which every port reaches every other.
bool same_subnet(const RailAddress& a, const RailAddress& b) noexcept;

/// A port pair for each port of the side that has more of them: with the port of the same number if
/// that is of its subnet, else with another one of it that has the fewest port pairs, else by
/// number: routers may lead there. Two sides of as many ports go by those of the one that `leads`.
Pairing pair_rails(std::span<const RailAddress> own, std::span<const RailAddress> peer, bool leads);

/// As the peer has told it. Nothing: it names a port that is not there.
std::optional<Pairing> read_pairing(const Control& message, std::size_t own_rails);

}  // namespace gdrx::verbs
