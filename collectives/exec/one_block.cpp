// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/one_block.hpp"

#include <array>
#include <atomic>
#include <span>

#include "collectives/reduce/reducer.hpp"

namespace gdrx::exec {

OneBlock::OneBlock(const ArenaLayout& layout, int self, const ArenaCall& call) noexcept
    : layout_(layout), call_(call), self_(self) {
  const std::uint64_t bytes = call.word.count * size_of(call.word.type);
  in_front_ = bytes <= ArenaFront::kData;
  reduce::copy(block_of(self), call.input, bytes);
  ArenaFront& front = layout.front(call.base + 1, self);
  front.word = call.word;
  // release: publishes the word and the input
  front.stage.store(call.base + 1, std::memory_order_release);
}

bool OneBlock::all_have_come() noexcept {
  const std::uint64_t stage = call_.base + 1;
  for (; come_ < layout_.ranks(); ++come_) {
    // acquire: pairs with the release above, so that what they wrote is seen
    if (layout_.front(stage, come_).stage.load(std::memory_order_acquire) < stage) return false;
  }
  return true;
}

bool OneBlock::agree() const noexcept {
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    if (rank != self_ && layout_.front(call_.base + 1, rank).word != call_.word) return false;
  }
  return true;
}

void OneBlock::end() noexcept {
  std::array<const void*, kMostRanks> inputs;
  const auto ranks = static_cast<std::size_t>(layout_.ranks());
  for (std::size_t rank = 0; rank < ranks; ++rank) inputs[rank] = block_of(static_cast<int>(rank));
  inputs[static_cast<std::size_t>(self_)] = call_.input;
  const int finish = call_.word.op == ReduceOp::avg ? layout_.ranks() : 0;
  reduce::reduce(call_.output, std::span(inputs).first(ranks), call_.word.count, call_.word.type,
                 call_.word.op, finish);
}

Counters OneBlock::counters() const noexcept {
  const auto others = static_cast<std::uint64_t>(layout_.ranks() - 1);
  return {1, others, others};
}

}  // namespace gdrx::exec
