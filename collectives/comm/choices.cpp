// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/choices.hpp"

#include "collectives/comm/parts.hpp"
#include "collectives/exec/arena_layout.hpp"
#include "collectives/exec/one_block.hpp"
#include "gdrx/traits.hpp"

namespace gdrx {
namespace {

using plan::Algorithm;

// Not chosen by its length alone: parts may be longer than others, and a scan's plan rounds narrow
// types at each rank.
bool may_be_one_block(const Machine& machine, const Call& call) noexcept {
  if (!exec::has_one_block(call.collective)) return false;
  if (exec::is_scan(call.collective)) return !machine.reproducible;
  // Who asks about a call has no parts: they are alike.
  if (!plan::traits_of(call.collective).has_parts() || !call.parts) return true;
  return exec::longest_of(parts_alike(call), size_of(call.type)) <=
         exec::ArenaLayout::shelf_bytes(machine.arena_block);
}

}  // namespace

bool Choices::can_carry(const Call& call) const noexcept {
  return gdrx::can_carry(machine, call.collective, call.needs_rank_order() ? std::nullopt : fixed);
}

// A barrier over shared memory is an allReduce of nothing, whatever algorithm was asked for.
Question Choices::question_of(const Call& call) const noexcept {
  if (call.collective == Collective::barrier && machine.shm) {
    return {Collective::all_reduce, 0, Algorithm::one_shot, false, false};
  }
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  const Bytes bytes = plan::vector_elements(traits, call.count, machine.ranks) * size_of(call.type);
  const Collective asked = traits.by_messages() ? call.collective : traits.plans;
  return {asked, bytes, fixed, call.needs_rank_order(), may_be_one_block(machine, call)};
}

Ways::Way* Choices::way_of(const Question& question) {
  if (Ways::Way* const way = ways_.find(question)) return way;
  if (const auto one = choose_one_block(machine, question)) return &ways_.keep(question, *one);
  if (plan::traits_of(question.collective).by_messages()) return nullptr;
  const auto choice =
      choose(machine, question.collective, question.bytes, question.fixed, question.in_rank_order);
  return choice ? &ways_.keep(question, choice->chosen) : nullptr;
}

Result<std::shared_ptr<const exec::Program>> Choices::program_for(const plan::Spec& spec,
                                                                  Rank self) {
  const auto key = std::tuple(spec.collective, spec.algorithm, spec.root, spec.leaves);
  if (const auto found = programs_.find(key); found != programs_.end()) return found->second;
  // Lists of leaves may differ from call to call.
  if (!spec.leaves.empty() && programs_.size() >= kMostPrograms) programs_.clear();
  const plan::RankProgram program = GDRX_TRY(plan::build_rank(spec, self));
  auto compiled = std::make_shared<const exec::Program>(exec::compile(program));
  programs_.emplace(key, compiled);
  return std::shared_ptr<const exec::Program>(compiled);
}

}  // namespace gdrx
