// SPDX-License-Identifier: Apache-2.0
// By which algorithm and over which path calls of host memory go: what was asked for, what the
// machine has, and what was chosen before.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "collectives/comm/call.hpp"
#include "collectives/comm/known_calls.hpp"
#include "collectives/comm/tuner.hpp"
#include "collectives/comm/ways.hpp"
#include "collectives/exec/program.hpp"
#include "gdrx/plan.hpp"

namespace gdrx {

/// Used by the thread that drives, but for what is const.
class Choices {
 public:
  // As the communicator is made; from then on they stay.
  Machine machine;
  std::optional<plan::Algorithm> fixed;  // asked for

  /// Whether host memory's calls of this kind have a way at all; the same on every rank.
  bool can_carry(const Call& call) const noexcept;
  Question question_of(const Call& call) const noexcept;
  /// What was chosen before. Null: nothing, or it is forgotten.
  const Ways::Way* known(const Question& question) noexcept { return ways_.find(question); }
  /// Calls that quick.cpp has made.
  KnownCalls calls;
  /// Null: nothing carries it by a plan.
  Ways::Way* way_of(const Question& question);
  /// Two-shot has as few bytes as any other, and the fewest latencies.
  plan::Algorithm of_rail() const { return fixed.value_or(plan::Algorithm::two_shot); }
  Result<std::shared_ptr<const exec::Program>> program_for(const plan::Spec& spec, Rank self);

 private:
  static constexpr std::size_t kMostPrograms = 256;
  Ways ways_;
  std::map<std::tuple<Collective, plan::Algorithm, Rank, std::vector<std::int32_t>>,
           std::shared_ptr<const exec::Program>>
      programs_;
};

}  // namespace gdrx
