// SPDX-License-Identifier: Apache-2.0
// A call of one block step by step: with a trace, or where it could not be done in one go.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/exec/arena_seat.hpp"
#include "collectives/exec/execution.hpp"
#include "collectives/exec/one_block.hpp"

namespace gdrx::exec {

class OneBlockExecution final : public Execution {
 public:
  /// `track` outlives it; null: nobody watches.
  OneBlockExecution(const OneBlock& begun, trace::Track* track);
  Result<Step> step() override;
  void on_write_done(std::uint64_t) noexcept override {}
  const Counters& counters() const noexcept override { return counters_; }
  std::string waiting_for() const override;
  std::vector<Rank> awaited() const override { return block_.awaited(); }
  std::uint64_t end_stage(std::uint64_t) const noexcept override { return block_.end_stage(); }

 private:
  trace::Span mark(const char* what) noexcept;

  OneBlock block_;
  std::optional<trace::RowMarks> marks_;  // empty where nobody watches
  Counters counters_;
};

}  // namespace gdrx::exec
