// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/lowering.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>

#include "gdrx/plan.hpp"

namespace gdrx::gpu {
namespace {

Rank position_in(std::span<const std::int32_t> ranks, Rank rank) {
  const auto* found = std::find(ranks.data(), ranks.data() + ranks.size(), index(rank));
  return Rank{static_cast<std::int32_t>(found - ranks.data())};
}

std::int32_t rank_at(std::span<const std::int32_t> ranks, Rank position) {
  return ranks[static_cast<std::size_t>(index(position))];
}

Result<plan::RankProgram> program_of(plan::Algorithm algorithm, std::size_t ranks, Rank position) {
  return plan::build_rank(
      {Collective::all_reduce, algorithm, static_cast<std::int32_t>(ranks), Rank{}}, position);
}

// Peers of the channel's operations of a kind, in their order.
std::vector<Rank> peers(const plan::Channel& channel, plan::OpKind kind) {
  std::vector<Rank> found;
  for (const plan::Op& op : channel) {
    if (op.kind == kind) found.push_back(op.peer);
  }
  return found;
}

}  // namespace

std::uint32_t bus_place(int domain, int bus, int device) noexcept {
  return static_cast<std::uint32_t>(domain) << 13 | (static_cast<std::uint32_t>(bus) & 0xff) << 5 |
         (static_cast<std::uint32_t>(device) & 0x1f);
}

std::vector<std::int32_t> positions_of(std::span<const Ticket> tickets) {
  std::vector<std::int32_t> ranks(tickets.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::stable_sort(ranks.begin(), ranks.end(), [&](std::int32_t a, std::int32_t b) {
    const Ticket& one = tickets[static_cast<std::size_t>(a)];
    const Ticket& other = tickets[static_cast<std::size_t>(b)];
    return std::tie(one.bus, one.device) < std::tie(other.bus, other.device);
  });
  return ranks;
}

// The chunk that a rank sends first is the one of its own position.
Result<RingPlace> ring_place(std::span<const std::int32_t> ranks, Rank self) {
  if (ranks.size() == 1) return RingPlace{0, index(self), index(self)};
  const auto program =
      GDRX_TRY(program_of(plan::Algorithm::ring, ranks.size(), position_in(ranks, self)));
  const plan::Channel& channel = program.channels.at(0);
  const std::vector<Rank> to = peers(channel, plan::OpKind::send);
  const std::vector<Rank> from = peers(channel, plan::OpKind::recv_reduce);
  return RingPlace{static_cast<std::int32_t>(channel.front().src.chunk), rank_at(ranks, from.at(0)),
                   rank_at(ranks, to.at(0))};
}

// What comes up is reduced, in the children's order; what comes down is copied.
Result<TreePlace> tree_place(std::span<const std::int32_t> ranks, Rank self, int tree) {
  TreePlace place;
  if (ranks.size() == 1) return place;
  const auto channel_of = [&](Rank position) -> Result<plan::Channel> {
    auto program = GDRX_TRY(program_of(plan::Algorithm::tree, ranks.size(), position));
    return std::move(program.channels.at(static_cast<std::size_t>(tree)));
  };
  const Rank position = position_in(ranks, self);
  const plan::Channel channel = GDRX_TRY(channel_of(position));
  const std::vector<Rank> below = peers(channel, plan::OpKind::recv_reduce);
  if (below.size() > std::size(place.children)) {
    return fail(Errc::internal, "a tree of more than two branches");
  }
  for (std::size_t i = 0; i < below.size(); ++i) place.children[i] = rank_at(ranks, below[i]);
  const std::vector<Rank> above = peers(channel, plan::OpKind::recv_copy);
  if (above.empty()) return place;
  const std::vector<Rank> beside =
      peers(GDRX_TRY(channel_of(above.front())), plan::OpKind::recv_reduce);
  place.parent = rank_at(ranks, above.front());
  place.branch =
      static_cast<std::int32_t>(std::find(beside.begin(), beside.end(), position) - beside.begin());
  return place;
}

}  // namespace gdrx::gpu
