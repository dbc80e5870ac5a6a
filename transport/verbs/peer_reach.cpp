// SPDX-License-Identifier: Apache-2.0
// Where a peer's ports are, and the handles of datagrams to them.
#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "transport/verbs/peer.hpp"

namespace gdrx::verbs {
namespace {

constexpr std::chrono::seconds kReachAgain{1};

/// Failures to resolve an address that may be over later.
bool passes(int error) noexcept {
  return error == ETIMEDOUT || error == EAGAIN || error == EHOSTUNREACH || error == ENETUNREACH ||
         error == ENETDOWN;
}

}  // namespace

Result<void> Peer::learn(std::uint8_t number, const RailAddress& rail) {
  PortPair& pair = *pairs_[number];
  Reach& state = reach_[number];
  const Instant now = core_.clock->now();
  if (state.known) {
    // What is late tells of an address that is no more.
    if (static_cast<std::int8_t>(rail.revision - pair.peer().revision) <= 0) return {};
    core_.log.warn("the address of {} of rank {} has changed", rail.name.data(), index(rank_));
  }
  if (rail.ethernet != pair.rail().address().ethernet) {
    return fail(Errc::unsupported, fmt::format("rank {}: its {} and our {} are of different kinds "
                                               "(InfiniBand and Ethernet): set GDRX_HCA",
                                               index(rank_), rail.name.data(), pair.rail().name()));
  }
  pair.set_peer(rail);
  const bool moved = std::exchange(state.known, true);
  state.own = pair.rail().address().revision;
  state.again = {};
  state.asked.forget();
  handles_[number].reset();
  GDRX_TRY(reach(pair, now));
  if (moved) pair.fail("the address of its peer's port has changed", now);
  return {};
}

// QPs and handles are of the address that our port had.
void Peer::follow_own_address(PortPair& pair, Instant now) {
  Reach& state = reach_[pair.number()];
  const std::uint8_t own = pair.rail().address().revision;
  if (std::exchange(state.own, own) == own) return;
  state.again = {};
  state.asked.forget();
  handles_[pair.number()].reset();
  pair.fail("the address of its port has changed", now);
}

// On Ethernet the driver asks the network for the peer's hardware address, and waits for an answer.
// A peer that does not answer now (its port is down, its host is busy) may do so later.
Result<void> Peer::reach(PortPair& pair, Instant now) {
  Reach& state = reach_[pair.number()];
  if (!state.asked.pending()) {
    if (now < state.again) return {};
    state.asked.ask(core_.helper,
                    [domain = pair.rail().domain(), route = pair.rail().route_to(pair.peer())] {
                      return domain->make_address(route);
                    });
  }
  return take_handle(pair);
}

Result<void> Peer::take_handle(PortPair& pair) {
  Reach& state = reach_[pair.number()];
  auto made = state.asked.take();
  if (!made) return {};
  if (*made) {
    handles_[pair.number()] = std::move(**made);
    return {};
  }
  const Error& error = made->error();
  if (!passes(error.native)) return tl::unexpected(error);
  state.again = core_.clock->now() + kReachAgain;
  if (!state.told) {
    core_.log.warn("rail {} does not reach {} of rank {} yet: {}", pair.rail().name(),
                   pair.peer().name.data(), index(rank_), gdrx::describe(error));
  }
  state.told = true;
  return {};
}

}  // namespace gdrx::verbs
