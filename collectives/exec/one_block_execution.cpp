// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/one_block_execution.hpp"

namespace gdrx::exec {

OneBlockExecution::OneBlockExecution(const OneBlock& begun, trace::Track* track) : block_(begun) {
  if (track != nullptr) marks_.emplace(*track, trace::Row::shared_memory);
}

trace::Span OneBlockExecution::mark(const char* what) noexcept {
  return marks_ ? marks_->step(what, {block_.bytes(), trace::kNobody, 0, {}}) : trace::Span();
}

Result<Step> OneBlockExecution::step() {
  const bool gives = !block_.given();
  if (marks_ && !marks_->has_chunk()) {
    marks_->begin_chunk("stage", gives ? 0 : 1, block_.bytes());
  }
  if (gives ? !block_.may_give() : !block_.have_come()) {
    if (marks_) marks_->waits("wait for", block_.late(), block_.bytes());
    return Step::idle;
  }
  if (marks_) marks_->goes_on();
  if (gives) {
    const trace::Span copy = mark("copy in");
    block_.give();
  } else {
    GDRX_TRY(block_.check());
    const trace::Span take = mark(block_.reduces() ? "reduce" : "take");
    block_.end();
    counters_ = block_.counters();
  }
  if (marks_) marks_->end_chunk();
  return gives ? Step::advanced : Step::done;
}

std::string OneBlockExecution::waiting_for() const {
  return exec::waiting_for(awaited(), block_.given() ? "finish stage 1 of 2" : kToTake);
}

}  // namespace gdrx::exec
