// SPDX-License-Identifier: Apache-2.0
// What must hold after the interpreter has run a plan.
#include <fmt/format.h>

#include "collectives/plan/builders/family.hpp"
#include "collectives/plan/interpreter.hpp"
#include "collectives/plan/leaf_tree.hpp"
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

bool has_output(const Spec& spec, std::int32_t rank) {
  if (family_of(spec.collective)->first_has_none && rank == 0) return false;
  return traits_of(spec.collective).output != Extent::of_root || Rank{rank} == spec.root;
}

Result<void> check_end(const Plan& plan, Interpreter& interpreter) {
  const builders::Family& family = *family_of(plan.spec.collective);
  for (std::int32_t rank = 0; rank < plan.spec.ranks; ++rank) {
    if (!has_output(plan.spec, rank)) continue;
    for (std::uint32_t c = 0; c < plan.shape.output_chunks; ++c) {
      if (!family.holds(builders::Ending(plan, interpreter, rank, c))) {
        return fail(Errc::invalid_argument,
                    fmt::format("rank {}: output chunk {} does not hold what it should", rank, c));
      }
    }
  }
  return {};
}

}  // namespace

namespace builders {

Ending::Ending(const Plan& plan, Interpreter& interpreter, std::int32_t of_rank,
               std::uint32_t of_chunk)
    : rank(of_rank),
      chunk(of_chunk),
      ranks(plan.spec.ranks),
      root(index(plan.spec.root)),
      plan_(plan),
      interpreter_(interpreter),
      got_(interpreter.value(of_rank, {Buffer::output, of_chunk, 0})) {}

bool Ending::is(std::int32_t source, std::uint32_t its_chunk) const {
  return got_ == interpreter_.expressions().leaf(source, its_chunk);
}

bool Ending::is_sum_of_first(std::int32_t count) const {
  return got_ == rank_order(interpreter_.expressions(), count, chunk);
}

bool Ending::is_sum(std::uint32_t its_chunk) const {
  Expressions& expressions = interpreter_.expressions();
  if (in_rank_order(plan_.spec.collective, plan_.spec.algorithm)) {
    return got_ == rank_order(expressions, ranks, its_chunk);
  }
  return expressions.is_whole(got_, ranks, its_chunk);
}

bool Ending::is_tree_of_leaves() const {
  Expressions& expressions = interpreter_.expressions();
  const auto expected = [&](const auto& self, const LeafNode& node) -> ExpressionId {
    if (node.is_leaf()) return expressions.leaf(node.begin, chunk);
    const ExpressionId left = self(self, node.left());
    return expressions.combine(left, self(self, node.right()));
  };
  return got_ == expected(expected, {0, leaves_of(plan_.spec)});
}

bool Ending::is_same_sum() const {
  return rank == 0 ? is_sum(chunk) : got_ == interpreter_.value(0, {Buffer::output, chunk, 0});
}

}  // namespace builders

Result<Proof> verify(const Plan& plan) {
  GDRX_TRY(check_form(plan));
  Proof proof;
  for (const bool in_place : {false, true}) {
    Interpreter interpreter(plan, in_place);
    GDRX_TRY(interpreter.run());
    GDRX_TRY(check_end(plan, interpreter));
    proof.messages = interpreter.messages();
  }
  return proof;
}

}  // namespace gdrx::plan
