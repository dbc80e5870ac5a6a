// SPDX-License-Identifier: Apache-2.0
// From a Spec to its shape and programs, by the families of builders/.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "collectives/plan/builders/builders.hpp"
#include "gdrx/plan.hpp"
#include "gdrx/plan_effort.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::plan {
namespace {

using builders::Family;
using builders::Row;

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
  if (spec.leaves.empty()) return {};
  if (traits_of(spec.collective).has_leaves()) return check_leaves(spec.leaves, spec.ranks);
  return fail(Errc::invalid_argument, fmt::format("{} has no leaves", to_string(spec.collective)));
}

// Every family that there is, in the order of Collective: one row's may be another's.
constexpr std::array kFamilies{
#define GDRX_COLLECTIVE(value, Function, input, output, op, root, plans) &builders::families::plans,
#include "gdrx/collectives.def"
};

std::span<const Row> rows_of(Collective collective) noexcept {
  const Family* const family = family_of(collective);
  if (family == nullptr || family->collective != collective) return {};
  return family->rows;
}

// Of the collective's own, or none.
const Row* find_row(Collective collective, Algorithm algorithm) noexcept {
  for (const Row& row : rows_of(collective)) {
    if (row.algorithm == algorithm) return &row;
  }
  return nullptr;
}

// A single rank has only its own contribution: it is complete as it stands.
RankProgram alone(Collective collective) {
  if (family_of(collective)->first_has_none) return builders::one_channel({});
  Op op = builders::copy(builders::out(0), builders::in(0));
  op.finish = true;
  return builders::one_channel({op});
}

}  // namespace

// Messages between pairs have no plans.
constexpr Family builders::families::send_recv{Collective::send_recv, std::array<Row, 0>{},
                                               nullptr};

const Family* family_of(Collective collective) noexcept {
  const auto row = static_cast<std::size_t>(collective);
  return row < kFamilies.size() ? kFamilies[row] : nullptr;
}

std::span<const Algorithm> algorithms_of(Collective collective) noexcept {
  const std::size_t rows = rows_of(collective).size();
  if (rows == 0) return {};
  return std::span(family_of(collective)->algorithms).first(rows);
}

std::vector<Collective> collectives_with_plans() {
  std::vector<Collective> all;
  for (std::size_t i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (!rows_of(collective).empty()) all.push_back(collective);
  }
  return all;
}

bool in_rank_order(Collective collective, Algorithm algorithm) noexcept {
  const Row* const row = find_row(collective, algorithm);
  return row != nullptr && row->order == builders::Order::of_ranks;
}

std::int32_t builders::power_of_two_below(std::int32_t n) noexcept {
  std::int32_t p = 1;
  while (p <= n / 2) p *= 2;
  return p;
}

Effort effort_of(Collective collective, Algorithm algorithm, int ranks) noexcept {
  const Row* const row = find_row(collective, algorithm);
  return row != nullptr ? row->cost(ranks) : Effort{};
}

Result<void> check_leaves(const std::vector<std::int32_t>& leaves, std::int32_t ranks) {
  if (leaves.size() != static_cast<std::size_t>(ranks)) {
    return fail(Errc::invalid_argument,
                fmt::format("{} numbers of leaves for {} ranks", leaves.size(), ranks));
  }
  std::int64_t all = 0;
  for (const std::int32_t count : leaves) {
    if (count < 0) return fail(Errc::invalid_argument, fmt::format("{} leaves of a rank", count));
    all += count;
  }
  if (all < 1 || all > kMostLeaves) {
    return fail(Errc::invalid_argument,
                fmt::format("{} leaves: there are 1 at least and {} at most", all, kMostLeaves));
  }
  const std::int64_t most = std::ranges::max(leaves);
  if (most * ranks <= kMostLeafParts) return {};
  return fail(Errc::invalid_argument,
              fmt::format("{} leaves of one of {} ranks: {} at most, divide them", most, ranks,
                          kMostLeafParts / ranks));
}

Result<Shape> shape_of(const Spec& spec) {
  GDRX_TRY(check(spec));
  Shape shape;
  const CollectiveTraits& traits = traits_of(spec.collective);
  if (spec.ranks == 1 && !traits.has_leaves()) return shape;
  const Row& row = *find_row(spec.collective, spec.algorithm);
  const std::int32_t most = spec.leaves.empty() ? 1 : std::ranges::max(spec.leaves);
  const auto chunks_of = [&](Extent extent) {
    const std::int32_t chunks = row.chunks(spec.ranks);
    if (extent == Extent::leaves) return static_cast<std::uint32_t>(chunks * most);
    return static_cast<std::uint32_t>(extent == Extent::all ? spec.ranks : chunks);
  };
  shape.input_chunks = chunks_of(traits.input);
  shape.output_chunks = chunks_of(traits.output);
  shape.channels = row.channels;
  return shape;
}

Result<RankProgram> build_rank(const Spec& spec, Rank rank) {
  GDRX_TRY(check(spec));
  if (index(rank) < 0 || index(rank) >= spec.ranks) {
    return fail(Errc::invalid_argument,
                fmt::format("rank {} is not one of {}", index(rank), spec.ranks));
  }
  if (spec.ranks == 1 && !traits_of(spec.collective).has_leaves()) return alone(spec.collective);
  const Row& row = *find_row(spec.collective, spec.algorithm);
  return row.build(spec, index(rank));
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
