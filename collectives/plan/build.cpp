// SPDX-License-Identifier: Apache-2.0
// From a Spec to its shape and programs: the table of builders.
#include <fmt/format.h>

#include <algorithm>

#include "collectives/plan/builders/builders.hpp"
#include "gdrx/plan.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::plan {
namespace {

Result<void> check(const Spec& spec) {
  if (spec.ranks < 1) return fail(Errc::invalid_argument, "a plan needs at least one rank");
  const auto allowed = algorithms_of(spec.collective);
  if (std::find(allowed.begin(), allowed.end(), spec.algorithm) == allowed.end()) {
    return fail(Errc::unsupported,
                fmt::format("there is no {} algorithm for {}", to_string(spec.algorithm),
                            to_string(spec.collective)));
  }
  if (index(spec.root) < 0 || index(spec.root) >= spec.ranks) {
    return fail(Errc::invalid_argument,
                fmt::format("root {} is not one of {} ranks", index(spec.root), spec.ranks));
  }
  return {};
}

// A single rank has only its own contribution: it is complete as it stands.
RankProgram alone() {
  Op op = builders::copy(builders::out(0), builders::in(0));
  op.finish = true;
  return builders::one_channel({op});
}

std::uint32_t all_reduce_chunks(const Spec& spec) {
  switch (spec.algorithm) {
    case Algorithm::ring:
    case Algorithm::two_shot:
      return static_cast<std::uint32_t>(spec.ranks);
    case Algorithm::tree:
      return 2;
    case Algorithm::halving_doubling:
      return static_cast<std::uint32_t>(builders::power_of_two_below(spec.ranks));
    case Algorithm::one_shot:
      return 1;
  }
  return 1;
}

RankProgram all_reduce(const Spec& spec, std::int32_t rank) {
  switch (spec.algorithm) {
    case Algorithm::ring:
      return builders::ring_all_reduce(spec.ranks, rank);
    case Algorithm::tree:
      return builders::tree_all_reduce(spec.ranks, rank);
    case Algorithm::halving_doubling:
      return builders::halving_doubling_all_reduce(spec.ranks, rank);
    case Algorithm::one_shot:
      return builders::one_shot_all_reduce(spec.ranks, rank);
    case Algorithm::two_shot:
      return builders::two_shot_all_reduce(spec.ranks, rank);
  }
  return {};
}

RankProgram program_of(const Spec& spec, std::int32_t rank) {
  const std::int32_t n = spec.ranks;
  const std::int32_t root = index(spec.root);
  const bool ring = spec.algorithm == Algorithm::ring;
  switch (spec.collective) {
    case Collective::all_reduce:
    case Collective::barrier:
      return all_reduce(spec, rank);
    case Collective::reduce_scatter:
      return ring ? builders::ring_reduce_scatter(n, rank)
                  : builders::direct_reduce_scatter(n, rank);
    case Collective::all_gather:
      return ring ? builders::ring_all_gather(n, rank) : builders::direct_all_gather(n, rank);
    case Collective::broadcast:
      return ring ? builders::chain_broadcast(n, rank, root)
                  : builders::binomial_broadcast(n, rank, root);
    case Collective::reduce:
      return ring ? builders::chain_reduce(n, rank, root)
                  : builders::binomial_reduce(n, rank, root);
    case Collective::send_recv:
      break;
  }
  return {};
}

}  // namespace

std::int32_t builders::power_of_two_below(std::int32_t n) noexcept {
  std::int32_t p = 1;
  while (p <= n / 2) p *= 2;
  return p;
}

Result<Shape> shape_of(const Spec& spec) {
  GDRX_TRY(check(spec));
  Shape shape;
  if (spec.ranks == 1) return shape;
  const auto n = static_cast<std::uint32_t>(spec.ranks);
  if (spec.collective == Collective::all_reduce || spec.collective == Collective::barrier) {
    shape.input_chunks = shape.output_chunks = all_reduce_chunks(spec);
    shape.channels = spec.algorithm == Algorithm::tree ? 2 : 1;
    return shape;
  }
  const CollectiveTraits& traits = traits_of(spec.collective);
  if (traits.input == Extent::all) shape.input_chunks = n;
  if (traits.output == Extent::all) shape.output_chunks = n;
  return shape;
}

Result<RankProgram> build_rank(const Spec& spec, Rank rank) {
  GDRX_TRY(check(spec));
  if (index(rank) < 0 || index(rank) >= spec.ranks) {
    return fail(Errc::invalid_argument,
                fmt::format("rank {} is not one of {}", index(rank), spec.ranks));
  }
  if (spec.ranks == 1) return alone();
  return program_of(spec, index(rank));
}

Result<Plan> build(const Spec& spec) {
  Plan plan;
  plan.spec = spec;
  plan.shape = GDRX_TRY(shape_of(spec));
  for (std::int32_t rank = 0; rank < spec.ranks; ++rank) {
    plan.ranks.push_back(GDRX_TRY(build_rank(spec, Rank{rank})));
  }
  return plan;
}

Traffic traffic_of(const RankProgram& program) noexcept {
  Traffic traffic;
  for (const Channel& channel : program.channels) {
    for (const Op& op : channel) {
      if (op.kind == OpKind::send) ++traffic.sends;
      if (op.kind == OpKind::recv_copy || op.kind == OpKind::recv_reduce) ++traffic.receives;
    }
  }
  return traffic;
}

}  // namespace gdrx::plan
