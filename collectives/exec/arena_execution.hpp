// SPDX-License-Identifier: Apache-2.0
// The one-shot and two-shot allReduce plans lowered to shared memory: a message is a slice that a
// peer reads in place, its signal the writer's stage counter. And, as one-shot of one block, the
// other collectives of one_block.hpp.
//
// Two-shot cuts the vector into blocks and runs three things a stage: copy block t in, reduce this
// rank's slice of block t-1 from all slots in rank order, copy block t-2 out; then one wait for
// all. Where the kernel lets ranks write each other's memory, the second and the third are one: the
// slice is reduced into the own output, and written from there, while it is in the cache, into the
// others'; the last stage then only waits for the others' writes. What the kernel does not write
// goes through the result block after all. One-shot runs two: copy block t in, reduce all of block
// t-1. Slots and results have two generations, chosen by the stage's
// parity; why that is enough stands in
// docs/concepts/shared-memory.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collectives/exec/arena_layout.hpp"
#include "collectives/exec/execution.hpp"
#include "collectives/exec/partition.hpp"
#include "collectives/exec/word.hpp"
#include "collectives/reduce/reducer.hpp"
#include "collectives/trace/span.hpp"
#include "transport/memory/process_memory.hpp"

namespace gdrx::exec {

struct ArenaCall {
  Word word;               // algorithm one_shot or two_shot
  std::uint64_t base = 0;  // stage at which it starts, the same on every rank
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::span<const std::int32_t> processes{};   // by rank, to write results into; empty: read them
  WriteGate* gate = nullptr;                   // of `output`, with processes
  trace::Track* track = nullptr;               // outlives the execution; null: nobody watches
  const reduce::UserOperator* user = nullptr;  // as that; null: the word's operator has a kernel
};

class ArenaExecution final : public Execution {
 public:
  /// Of a call that has not ended: closes the gate, so that nobody writes this rank's output any
  /// more and it can be freed. Waits for whoever the kernel is writing for just now, 10 s at most.
  ~ArenaExecution() override;
  ArenaExecution(const ArenaLayout& layout, int self, const ArenaCall& call);
  /// Before the first step(): somebody has run the first stage of this call.
  void skip_first_stage() noexcept;
  Result<Step> step() override;
  void on_write_done(std::uint64_t) noexcept override {}
  const Counters& counters() const noexcept override { return counters_; }
  std::string waiting_for() const override;
  std::vector<Rank> awaited() const override;
  std::uint64_t end_stage(std::uint64_t) const noexcept override {
    return call_.base + stages_ + (two_shot_ ? 0 : 1);
  }

 private:
  void publish(std::uint64_t stage) noexcept;
  bool all_reached(std::uint64_t stage) noexcept;
  Result<void> check_words() const;
  Result<void> run_stage(std::uint64_t t);
  void copy_in(std::uint64_t block) noexcept;
  void reduce_block(std::uint64_t block) noexcept;
  Result<void> write_out(std::uint64_t block);
  void keep(std::uint64_t block, const Range& part) noexcept;
  void copy_out(std::uint64_t block) noexcept;
  void copy_kept(std::uint64_t block) noexcept;
  void take() noexcept;
  trace::Span step_mark(const char* what, std::uint64_t block) noexcept;
  std::byte* slot(std::uint64_t block, int rank) const noexcept;
  Range block_range(std::uint64_t block) const noexcept;
  Range own_part(const Range& block) const noexcept;  // relative to the block

  ArenaLayout layout_;
  int self_;
  ArenaCall call_;
  bool two_shot_;
  bool reduces_all_;  // an allReduce or a barrier; else one block
  bool streaming_;
  bool writes_;  // results into the others' outputs
  std::size_t element_;
  std::uint64_t per_block_;  // elements
  std::uint64_t blocks_;
  std::uint64_t stages_;
  bool in_front_;                    // the input goes with the stage
  std::uint64_t next_ = 0;           // stage to run, relative to base
  int waiting_for_ = 0;              // first rank not known to have reached it
  std::array<const void*, 32> few_;  // operands, by rank
  std::vector<const void*> many_;    // likewise, where there are more ranks
  std::vector<bool> unwritable_;  // by rank: he takes results from the result block; empty: nobody
  std::optional<trace::RowMarks> marks_;  // empty where nobody watches
  Counters counters_;
};

}  // namespace gdrx::exec
