// SPDX-License-Identifier: Apache-2.0
// How a peer ends.
#include <fmt/format.h>

#include <algorithm>

#include "transport/verbs/peer.hpp"

namespace gdrx::verbs {

void Peer::pair_refused(std::uint8_t pair, const std::string& why, bool for_good) {
  last_.pair = pair;
  last_.why = why;
  const Instant now = core_.clock->now();
  if (!refused_since_) {
    refused_since_ = now;
    core_.log.warn("rail {} {}: {} (peer rank {})", pairs_[pair]->rail().name(),
                   for_good ? "is of no use" : "is not connected yet", why, index(rank_));
  }
  const bool any_up = std::any_of(pairs_.begin(), pairs_.end(), [](const auto& other) {
    return other->state() == PairState::up;
  });
  if (any_up) refused_since_ = now;
  if (now - *refused_since_ >= core_.options.peer_timeout)
    give_up("no rail to it can be connected");
}

// Whatever its NICs still send finds no QP, and ours read nothing for it.
void Peer::give_up(std::string why) {
  if (given_up_) return;
  given_up_ = true;
  std::string refusals;
  for (const auto& rail : core_.rails) refusals += rail->refusals();
  Error error{
      Errc::peer_lost,
      fmt::format("rank {} is lost: {}; the last rail was {}{}{}{}", index(rank_), why,
                  ends_of(*pairs_[last_.pair]), last_.why.empty() ? "" : ": ", last_.why, refusals),
      0};
  for (const auto& pair : pairs_) pair->shut();
  outgoing_.abandon();
  if (!core_.isolating) return core_.fail_with(std::move(error));
  error_ = std::move(error);
  core_.log.warn("{}", error_->what);
}

}  // namespace gdrx::verbs
