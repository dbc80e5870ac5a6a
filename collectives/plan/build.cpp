// SPDX-License-Identifier: Apache-2.0
// From a Spec to its shape and programs: the table of builders.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "collectives/plan/builders/builders.hpp"
#include "gdrx/plan.hpp"
#include "gdrx/plan_effort.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::plan {
namespace builders {

RankProgram ring_all_reduce(std::int32_t n, std::int32_t rank);
RankProgram ring_reduce_scatter(std::int32_t n, std::int32_t rank);
RankProgram ring_all_gather(std::int32_t n, std::int32_t rank);
RankProgram tree_all_reduce(std::int32_t n, std::int32_t rank);
RankProgram halving_doubling_all_reduce(std::int32_t n, std::int32_t rank);
RankProgram one_shot_all_reduce(std::int32_t n, std::int32_t rank);
RankProgram two_shot_all_reduce(std::int32_t n, std::int32_t rank);
RankProgram direct_reduce_scatter(std::int32_t n, std::int32_t rank);
RankProgram direct_all_gather(std::int32_t n, std::int32_t rank);
RankProgram direct_reduce(std::int32_t n, std::int32_t rank, std::int32_t root);
RankProgram chain_scan(std::int32_t n, std::int32_t rank);
RankProgram direct_scan(std::int32_t n, std::int32_t rank);
RankProgram chain_exscan(std::int32_t n, std::int32_t rank);
RankProgram direct_exscan(std::int32_t n, std::int32_t rank);
RankProgram chain_broadcast(std::int32_t n, std::int32_t rank, std::int32_t root);
RankProgram chain_reduce(std::int32_t n, std::int32_t rank, std::int32_t root);
RankProgram binomial_broadcast(std::int32_t n, std::int32_t rank, std::int32_t root);
RankProgram binomial_reduce(std::int32_t n, std::int32_t rank, std::int32_t root);

}  // namespace builders

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

// A single rank has only its own contribution: it is complete as it stands. Before the first there
// is none.
RankProgram alone(Collective collective) {
  if (collective == Collective::exscan) return builders::one_channel({});
  Op op = builders::copy(builders::out(0), builders::in(0));
  op.finish = true;
  return builders::one_channel({op});
}

using Builder = RankProgram (*)(std::int32_t n, std::int32_t rank, std::int32_t root);

template <RankProgram (*kBuild)(std::int32_t, std::int32_t)>
RankProgram no_root(std::int32_t n, std::int32_t rank, std::int32_t) {
  return kBuild(n, rank);
}

// How many chunks a vector of `n` ranks has.
using Chunks = std::int32_t (*)(std::int32_t n) noexcept;
std::int32_t one(std::int32_t) noexcept { return 1; }
std::int32_t two(std::int32_t) noexcept { return 2; }
std::int32_t each(std::int32_t n) noexcept { return n; }

// What it costs `n` ranks.
using Cost = Effort (*)(double n);
double rounds(double n) { return std::ceil(std::log2(n)); }
Effort once_around(double n) { return {n - 1, (n - 1) / n, 1}; }
Effort twice_around(double n) { return {2 * (n - 1), 2 * (n - 1) / n, 1}; }
Effort in_a_chain(double n) { return {n - 1, 1, 1}; }
Effort up_and_down(double n) { return {2 * rounds(n), 2, 2}; }
Effort by_halves(double n) { return {2 * rounds(n), 2 * (n - 1) / n, 1}; }
Effort one_by_one(double n) { return {n - 1, n - 1, n}; }
Effort all_at_once(double n) { return {1, n - 1, n}; }

struct Row {
  Collective collective;
  Algorithm algorithm;
  Builder build;
  Cost cost;
  Chunks chunks = one;  // buffers with a block for each rank have a chunk a block
  std::uint32_t channels = 1;
};

// Every plan that there is. Rows of one collective stand together. A barrier is an allReduce of
// nothing.
constexpr std::array kRows{
    Row{Collective::all_reduce, Algorithm::ring, no_root<builders::ring_all_reduce>, twice_around,
        each},
    Row{Collective::all_reduce, Algorithm::tree, no_root<builders::tree_all_reduce>, up_and_down,
        two, 2},
    Row{Collective::all_reduce, Algorithm::halving_doubling,
        no_root<builders::halving_doubling_all_reduce>, by_halves, builders::power_of_two_below},
    Row{Collective::all_reduce, Algorithm::one_shot, no_root<builders::one_shot_all_reduce>,
        one_by_one},
    Row{Collective::all_reduce, Algorithm::two_shot, no_root<builders::two_shot_all_reduce>,
        twice_around, each},
    Row{Collective::reduce_scatter, Algorithm::ring, no_root<builders::ring_reduce_scatter>,
        once_around},
    Row{Collective::reduce_scatter, Algorithm::two_shot, no_root<builders::direct_reduce_scatter>,
        once_around},
    Row{Collective::all_gather, Algorithm::ring, no_root<builders::ring_all_gather>, once_around},
    Row{Collective::all_gather, Algorithm::one_shot, no_root<builders::direct_all_gather>,
        one_by_one},
    Row{Collective::broadcast, Algorithm::ring, builders::chain_broadcast, in_a_chain},
    Row{Collective::broadcast, Algorithm::tree, builders::binomial_broadcast, up_and_down},
    Row{Collective::reduce, Algorithm::ring, builders::chain_reduce, in_a_chain},
    Row{Collective::reduce, Algorithm::tree, builders::binomial_reduce, up_and_down},
    Row{Collective::reduce, Algorithm::one_shot, builders::direct_reduce, one_by_one},
    Row{Collective::barrier, Algorithm::tree, no_root<builders::tree_all_reduce>, up_and_down, two,
        2},
    Row{Collective::barrier, Algorithm::halving_doubling,
        no_root<builders::halving_doubling_all_reduce>, by_halves, builders::power_of_two_below},
    Row{Collective::scan, Algorithm::ring, no_root<builders::chain_scan>, in_a_chain},
    Row{Collective::scan, Algorithm::one_shot, no_root<builders::direct_scan>, all_at_once},
    Row{Collective::exscan, Algorithm::ring, no_root<builders::chain_exscan>, in_a_chain},
    Row{Collective::exscan, Algorithm::one_shot, no_root<builders::direct_exscan>, all_at_once},
};

constexpr auto kAlgorithms = [] {
  std::array<Algorithm, kRows.size()> column{};
  for (std::size_t i = 0; i < column.size(); ++i) column[i] = kRows[i].algorithm;
  return column;
}();

std::span<const Row> rows_of(Collective collective) noexcept {
  const auto own = [&](const Row& row) { return row.collective == collective; };
  const auto first = std::find_if(kRows.begin(), kRows.end(), own);
  return {first, std::find_if_not(first, kRows.end(), own)};
}

// check() has refused a spec without a row.
const Row& row_of(const Spec& spec) noexcept {
  const std::span<const Row> rows = rows_of(spec.collective);
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const Row& row) { return row.algorithm == spec.algorithm; });
}

}  // namespace

std::span<const Algorithm> algorithms_of(Collective collective) noexcept {
  const std::span<const Row> rows = rows_of(collective);
  return std::span(kAlgorithms)
      .subspan(static_cast<std::size_t>(rows.data() - kRows.data()), rows.size());
}

std::vector<Collective> collectives_with_plans() {
  std::vector<Collective> all;
  for (const Row& row : kRows) {
    if (all.empty() || all.back() != row.collective) all.push_back(row.collective);
  }
  return all;
}

std::int32_t builders::power_of_two_below(std::int32_t n) noexcept {
  std::int32_t p = 1;
  while (p <= n / 2) p *= 2;
  return p;
}

Effort effort_of(Collective collective, Algorithm algorithm, int ranks) noexcept {
  for (const Row& row : rows_of(collective)) {
    if (row.algorithm == algorithm) return row.cost(ranks);
  }
  return {};
}

Result<Shape> shape_of(const Spec& spec) {
  GDRX_TRY(check(spec));
  Shape shape;
  if (spec.ranks == 1) return shape;
  const Row& row = row_of(spec);
  const CollectiveTraits& traits = traits_of(spec.collective);
  const auto chunks_of = [&](Extent extent) {
    return static_cast<std::uint32_t>(extent == Extent::all ? spec.ranks : row.chunks(spec.ranks));
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
  if (spec.ranks == 1) return alone(spec.collective);
  return row_of(spec).build(spec.ranks, index(rank), index(spec.root));
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
