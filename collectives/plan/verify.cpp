// SPDX-License-Identifier: Apache-2.0
// What must hold after the machine has run a plan.
#include <fmt/format.h>

#include "collectives/plan/machine.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::plan {
namespace {

Result<void> check_form(const Plan& plan) {
  const Shape shape = GDRX_TRY(shape_of(plan.spec));
  if (!(shape == plan.shape)) {
    return fail(Errc::invalid_argument, "the plan's shape is not that of its algorithm");
  }
  if (plan.ranks.size() != static_cast<std::size_t>(plan.spec.ranks)) {
    return fail(Errc::invalid_argument, "the plan has not a program for every rank");
  }
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    if (plan.ranks[rank].channels.size() != plan.shape.channels) {
      return fail(Errc::invalid_argument,
                  fmt::format("rank {} has not {} channels", rank, plan.shape.channels));
    }
  }
  return {};
}

// 0 (op) 1 (op) 2 ... of the first `ranks`: what direct algorithms must give, and sums of the ranks
// before.
ExpressionId rank_order(Expressions& expressions, std::int32_t ranks, std::uint32_t chunk) {
  ExpressionId sum = expressions.leaf(0, chunk);
  for (std::int32_t rank = 1; rank < ranks; ++rank) {
    sum = expressions.combine(sum, expressions.leaf(rank, chunk));
  }
  return sum;
}

class Postcondition {
 public:
  Postcondition(const Plan& plan, Machine& machine) : plan_(plan), machine_(machine) {}

  Result<void> check() {
    for (std::int32_t rank = 0; rank < plan_.spec.ranks; ++rank) {
      if (!has_output(rank)) continue;
      for (std::uint32_t c = 0; c < plan_.shape.output_chunks; ++c) {
        const ExpressionId got = machine_.value(rank, {Buffer::output, c, 0});
        if (!holds(rank, c, got)) {
          return fail(
              Errc::invalid_argument,
              fmt::format("rank {}: output chunk {} does not hold what it should", rank, c));
        }
      }
    }
    return {};
  }

 private:
  bool has_output(std::int32_t rank) const {
    if (plan_.spec.collective == Collective::exscan) return rank > 0;
    return traits_of(plan_.spec.collective).output != Extent::of_root ||
           Rank{rank} == plan_.spec.root;
  }

  bool holds(std::int32_t rank, std::uint32_t c, ExpressionId got) {
    using enum Collective;
    Expressions& expressions = machine_.expressions();
    const Collective what = plan_.spec.collective;
    if (what == all_gather) return got == expressions.leaf(static_cast<std::int32_t>(c), 0);
    if (what == broadcast) return got == expressions.leaf(index(plan_.spec.root), c);
    if (what == scan) return got == rank_order(expressions, rank + 1, c);
    if (what == exscan) return got == rank_order(expressions, rank, c);
    if (what == reduce_scatter) return reduced(static_cast<std::uint32_t>(rank), got);
    if (what == reduce) return reduced(c, got);
    // Every rank's chunk is the same expression: the same bits.
    return rank == 0 ? reduced(c, got) : got == machine_.value(0, {Buffer::output, c, 0});
  }

  bool reduced(std::uint32_t chunk, ExpressionId got) {
    Expressions& expressions = machine_.expressions();
    if (in_rank_order(plan_.spec.collective, plan_.spec.algorithm)) {
      return got == rank_order(expressions, plan_.spec.ranks, chunk);
    }
    return expressions.is_whole(got, plan_.spec.ranks, chunk);
  }

  const Plan& plan_;
  Machine& machine_;
};

}  // namespace

Result<Proof> verify(const Plan& plan) {
  GDRX_TRY(check_form(plan));
  Proof proof;
  for (const bool in_place : {false, true}) {
    Machine machine(plan, in_place);
    GDRX_TRY(machine.run());
    GDRX_TRY(Postcondition(plan, machine).check());
    proof.messages = machine.messages();
  }
  return proof;
}

}  // namespace gdrx::plan
