// SPDX-License-Identifier: Apache-2.0
// A small call between the ranks of a host, from its beginning to its end in one go: without an
// operation, which takes memory, a place in the queue and a clock.
#include <utility>

#include "collectives/comm/communicator.hpp"
#include "collectives/exec/one_block.hpp"
#include "transport/memory/cuda_memory.hpp"

namespace gdrx {
namespace {

using plan::Algorithm;

// Looks at the peers before the call becomes an operation: some microseconds where each rank has a
// core, for which nothing else is served.
constexpr int kLooksAlone = 1000;
constexpr int kLooksShared = 2;

void set_way(OperationInfo& info, const Ways::Way& way) {
  info.algorithm = way.chosen.algorithm;
  info.path = way.chosen.path;
  info.predicted_us = way.chosen.predicted_us;
  info.planned = *way.planned;
}

}  // namespace

Result<void> Communicator::run(Call& call) {
  std::shared_ptr<Operation> late;
  if (may_be_quick(call) && run_quickly(call, late)) return {};
  if (!late) late = GDRX_TRY(post(std::move(call)));
  return wait(*late);
}

// What needs nobody else's turn, no stream and no other memory.
bool Communicator::may_be_quick(const Call& call) const noexcept {
  const bool known = exec::has_one_block(call.collective) || call.collective == Collective::barrier;
  return known && (layout_ || size() == 1) && call.stream == nullptr && !call.made && !gpu_ &&
         !track_ && !cuda::is_loaded();
}

// True: it has ended. Else `late` is what has become of it; null: nothing was begun.
bool Communicator::run_quickly(const Call& call, std::shared_ptr<Operation>& late) {
  const std::unique_lock lock(driver_, std::try_to_lock);
  if (!lock.owns_lock() || failure_.happened() || has_posted_ || suspicion_.kept() || !idle()) {
    return false;
  }
  const Question question = question_of(call);
  const Bytes bytes = question.bytes;
  if (registrations_->size() > 0 && registrations_->find({call.input, bytes}) != nullptr) {
    return false;  // an operation says whether all of its buffers are
  }
  const Ways::Way* const way = ways_.find(question);
  if (way == nullptr || !way->planned) return false;
  if (size() == 1 && bytes > machine_.arena_block) return false;
  if (size() == 1) {
    ++calls_;
    if (call.output != call.input) reduce::copy(call.output, call.input, bytes);
    end_quickly(*way, {.slices = 1});
    return true;
  }
  const Candidate& chosen = way->chosen;
  if (chosen.path != PathKind::shm || chosen.algorithm != Algorithm::one_shot) return false;
  if (!exec::fits_one_block(question.collective, bytes, size(), layout_->block())) return false;
  word_ = next_word(call, chosen.algorithm);
  publish_word();
  const exec::ArenaCall bound = arena_call(call);
  exec::OneBlock block(*layout_, index(rank_), bound);
  const int most = machine_.ranks > machine_.cpus ? kLooksShared : kLooksAlone;
  for (int looks = 0; looks < most; ++looks) {
    if (!block.all_have_come()) continue;
    if (!block.agree()) break;  // an operation says how
    block.end();
    stage_ = block.end_stage();
    end_quickly(*way, block.counters());
    return true;
  }
  auto execution = std::make_unique<exec::ArenaExecution>(*layout_, index(rank_), bound);
  execution->skip_first_stage();
  late = operation_of(call);
  late->execution = std::move(execution);
  set_way(late->info, *way);
  begin(*late);
  queue_.push_back(late);
  return false;
}

void Communicator::end_quickly(const Ways::Way& way, const exec::Counters& counters) noexcept {
  set_way(last_, way);
  last_.counters = counters;
  last_.staged = last_.registered = false;
  last_was_gpu_.store(false, std::memory_order_relaxed);  // as in finish_front()
  stirred_ = true;
}

}  // namespace gdrx
