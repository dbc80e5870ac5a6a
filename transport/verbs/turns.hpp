// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "transport/verbs/peer.hpp"

namespace gdrx::verbs {

/// Peers with which nothing is going on are looked at in turns, so that a tick costs little however
/// many there are.
class Turns {
 public:
  void reserve(std::size_t peers) { all_.reserve(peers); }
  void add(Peer* peer) noexcept {
    all_.push_back(peer);
    peer->stir();
  }
  void remove(Peer* peer) noexcept { std::erase(all_, peer); }
  /// Those whose turn it is.
  void stir_some() noexcept {
    const std::size_t share = std::min(all_.size(), std::max(kFew, all_.size() / kTurns));
    for (std::size_t i = 0; i < share; ++i) {
      last_ = last_ + 1 < all_.size() ? last_ + 1 : 0;
      all_[last_]->stir();
    }
  }

 private:
  static constexpr std::size_t kFew = 16;    // all have their turn each time
  static constexpr std::size_t kTurns = 16;  // in which more of them have theirs
  std::vector<Peer*> all_;
  std::size_t last_ = 0;
};

}  // namespace gdrx::verbs
