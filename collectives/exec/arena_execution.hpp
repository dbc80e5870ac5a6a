// SPDX-License-Identifier: Apache-2.0
// The one-shot and two-shot allReduce plans lowered to shared memory: a message is a slice that a
// peer reads in place, its signal the writer's stage counter; the first of a call is its post.
// One-shot of one block is OneBlock's.
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

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/exec/arena_seat.hpp"
#include "collectives/exec/execution.hpp"
#include "collectives/exec/partition.hpp"
#include "collectives/trace/span.hpp"

namespace gdrx::exec {

class ArenaExecution final : public Execution {
 public:
  /// Of a call that has not ended: closes the gate, so that nobody writes this rank's output any
  /// more and it can be freed. Waits for whoever the kernel is writing for just now, 10 s at most.
  ~ArenaExecution() override;
  ArenaExecution(ArenaSeat& seat, const ArenaCall& call);
  Result<Step> step() override;
  void on_write_done(std::uint64_t) noexcept override {}
  const Counters& counters() const noexcept override { return counters_; }
  std::string waiting_for() const override;
  std::vector<Rank> awaited() const override;
  std::uint64_t end_stage(std::uint64_t) const noexcept override {
    return call_.base + stages_ + (two_shot_ ? 0 : 1);
  }

 private:
  bool has_reached(int rank, std::uint64_t stage) const noexcept;
  bool may_go_on() noexcept;
  Result<void> meet();
  void publish(bool last) noexcept;
  Result<void> run_stage(std::uint64_t t);
  void copy_in(std::uint64_t block) noexcept;
  void reduce_block(std::uint64_t block) noexcept;
  Result<void> write_out(std::uint64_t block);
  void keep(std::uint64_t block, const Range& part) noexcept;
  void copy_out(std::uint64_t block) noexcept;
  void copy_kept(std::uint64_t block) noexcept;
  trace::Span step_mark(const char* what, std::uint64_t block) noexcept;
  Range block_range(std::uint64_t block) const noexcept;
  Range own_part(const Range& block) const noexcept;  // relative to the block

  ArenaSeat& seat_;
  const ArenaLayout& layout_;
  int self_;
  ArenaCall call_;
  bool two_shot_;
  bool streaming_;
  bool writes_;  // results into the others' outputs
  std::size_t element_;
  std::uint64_t per_block_;  // elements
  std::uint64_t blocks_;
  std::uint64_t stages_;
  std::uint64_t next_ = 0;        // stage to run, relative to base
  int waiting_for_ = 0;           // first rank not known to have reached it
  std::vector<bool> unwritable_;  // by rank: he takes results from the result block; empty: nobody
  std::optional<trace::RowMarks> marks_;  // empty where nobody watches
  Counters counters_;
};

}  // namespace gdrx::exec
