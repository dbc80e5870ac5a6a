// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/pairing.hpp"

#include <algorithm>
#include <tuple>

namespace gdrx::verbs {
namespace {

static_assert(kMaxRails <= 8, "4 bits a port pair in 32");

using Partners = std::array<std::uint8_t, kMaxRails>;

Partners partners_of(std::span<const RailAddress> wide, std::span<const RailAddress> narrow) {
  Partners partner{};
  std::array<unsigned, kMaxRails> pairs{};
  std::array<bool, kMaxRails> found{};
  const auto join = [&](std::size_t pair, std::size_t to) {
    partner[pair] = static_cast<std::uint8_t>(to);
    found[pair] = true;
    ++pairs[to];
  };
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    if (same_subnet(wide[i], narrow[i])) join(i, i);
  }
  // First those that a subnet decides, so that the others take what is left.
  for (const bool by_number : {false, true}) {
    for (std::size_t i = 0; i < wide.size(); ++i) {
      if (found[i]) continue;
      std::size_t best = narrow.size();
      const auto rank = [&](std::size_t j) {
        return std::tuple(pairs[j], j != i % narrow.size(), j);
      };
      for (std::size_t j = 0; j < narrow.size(); ++j) {
        if (!by_number && !same_subnet(wide[i], narrow[j])) continue;
        if (best == narrow.size() || rank(j) < rank(best)) best = j;
      }
      if (best != narrow.size()) join(i, best);
    }
  }
  return partner;
}

std::uint32_t word_of(const Pairing& pairing, std::uint8_t RailPair::*side) noexcept {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < pairing.count; ++i) {
    word |= std::uint32_t{pairing.pairs[i].*side} << (4 * i);
  }
  return word;
}

}  // namespace

std::uint32_t Pairing::own_word() const noexcept { return word_of(*this, &RailPair::own); }
std::uint32_t Pairing::peer_word() const noexcept { return word_of(*this, &RailPair::peer); }

bool same_subnet(const RailAddress& a, const RailAddress& b) noexcept {
  if (a.ethernet != b.ethernet || a.subnet_bits == 0 || a.subnet_bits != b.subnet_bits) {
    return false;
  }
  for (unsigned bit = 0; bit < std::min<unsigned>(a.subnet_bits, 128); ++bit) {
    if (((a.gid[bit / 8] ^ b.gid[bit / 8]) & (0x80U >> (bit % 8))) != 0) return false;
  }
  return true;
}

Pairing pair_rails(std::span<const RailAddress> own, std::span<const RailAddress> peer,
                   bool leads) {
  const bool ours = own.size() != peer.size() ? own.size() > peer.size() : leads;
  const Partners partner = ours ? partners_of(own, peer) : partners_of(peer, own);
  Pairing made;
  made.count = std::max(own.size(), peer.size());
  for (std::size_t i = 0; i < made.count; ++i) {
    const auto wide = static_cast<std::uint8_t>(i);
    made.pairs[i] = ours ? RailPair{wide, partner[i]} : RailPair{partner[i], wide};
  }
  return made;
}

std::optional<Pairing> read_pairing(const Control& message, std::size_t own_rails) {
  Pairing made;
  made.count = std::max<std::size_t>(own_rails, message.rails);
  for (std::size_t i = 0; i < made.count; ++i) {
    made.pairs[i].own = (message.peer_rails >> (4 * i)) & 0xf;
    made.pairs[i].peer = (message.own_rails >> (4 * i)) & 0xf;
    if (made.pairs[i].own >= own_rails || made.pairs[i].peer >= message.rails) return std::nullopt;
  }
  return made;
}

}  // namespace gdrx::verbs
