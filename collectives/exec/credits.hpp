// SPDX-License-Identifier: Apache-2.0
// What this rank owes those whose messages it has consumed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/exec/send_ring.hpp"

namespace gdrx::exec {

/// Credits on their way back. Whoever consumes messages has one, and ends when it owes nothing.
class Credits {
 public:
  /// Room for those of so many more peers' lanes: give_back() allocates nothing.
  void make_room(std::size_t lanes) { owed_.reserve(room_ += lanes); }
  /// Of the peer's messages on the lane, `consumed` are, after one more: ReceiveRing::consume().
  Result<void> give_back(SendRing& to, std::uint32_t lane, std::uint64_t consumed);
  /// Tries again what there was no room for.
  Result<void> pay();
  bool owes() const noexcept { return !owed_.empty(); }
  void clear() noexcept { owed_.clear(); }

 private:
  struct Owed {
    SendRing* to = nullptr;
    std::uint32_t lane = 0;
    std::uint64_t consumed = 0;
  };
  std::vector<Owed> owed_;  // one of a peer's lane
  std::size_t room_ = 0;
};

}  // namespace gdrx::exec
