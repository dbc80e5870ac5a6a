// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/one_block.hpp"

#include <array>
#include <atomic>
#include <span>

#include "collectives/reduce/reducer.hpp"

namespace gdrx::exec {

namespace {

// A part for each rank; else every rank needs all of it.
bool has_a_part_for_each(const Word& word) noexcept {
  return word.collective == Collective::reduce_scatter || word.collective == Collective::all_to_all;
}

}  // namespace

std::uint64_t published_bytes(const Word& word, int ranks) noexcept {
  const auto parts = static_cast<std::uint64_t>(has_a_part_for_each(word) ? ranks : 1);
  return word.count * size_of(word.type) * parts;
}

void take_block(const ArenaCall& call, int self,
                std::span<const std::byte* const> blocks) noexcept {
  const Word& word = call.word;
  const std::uint64_t part = word.count * size_of(word.type);
  const auto ranks = blocks.size();
  const auto own = static_cast<std::size_t>(self);
  const std::uint64_t from = has_a_part_for_each(word) ? own * part : 0;
  std::array<const void*, kMostRanksOfOneBlock> all;
  const std::span<const void*> inputs = std::span(all).first(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    inputs[rank] = (rank == own ? call.input : blocks[rank]) + from;
  }
  if (word.collective == Collective::all_gather || word.collective == Collective::all_to_all) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::byte* const to = call.output + rank * part;
      if (to != inputs[rank]) reduce::copy(to, inputs[rank], part);
    }
    return;
  }
  if (call.user != nullptr) {
    reduce::reduce_by(*call.user, call.output, inputs, word.count, word.type);
  } else {
    const int finish = word.op == ReduceOp::avg ? static_cast<int>(ranks) : 0;
    reduce::reduce(call.output, inputs, word.count, word.type, word.op, finish);
  }
}

OneBlock::OneBlock(const ArenaLayout& layout, int self, const ArenaCall& call) noexcept
    : layout_(layout), call_(call), self_(self) {
  const std::uint64_t bytes = published_bytes(call.word, layout.ranks());
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
  std::array<const std::byte*, kMostRanksOfOneBlock> blocks;
  const auto ranks = static_cast<std::size_t>(layout_.ranks());
  for (std::size_t rank = 0; rank < ranks; ++rank) blocks[rank] = block_of(static_cast<int>(rank));
  take_block(call_, self_, std::span(blocks).first(ranks));
}

Counters OneBlock::counters() const noexcept {
  const auto others = static_cast<std::uint64_t>(layout_.ranks() - 1);
  return {1, others, others};
}

}  // namespace gdrx::exec
