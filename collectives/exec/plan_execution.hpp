// SPDX-License-Identifier: Apache-2.0
// Runs a compiled plan over Endpoints: every slice is an instance of the program, instances are
// dealt to lanes, a lane runs its instances one after another, lanes run beside each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/exec/call_signature.hpp"
#include "collectives/exec/credits.hpp"
#include "collectives/exec/execution.hpp"
#include "collectives/exec/partition.hpp"
#include "collectives/exec/program.hpp"
#include "collectives/exec/send_ring.hpp"
#include "collectives/reduce/reducer.hpp"
#include "collectives/trace/span.hpp"

namespace gdrx::exec {

/// One buffer of a bound plan: input or output.
struct Binding {
  std::byte* base = nullptr;
  Partition partition;
  RegistrationRef registration{};  // found by the execution; null: its payloads are copied
};

struct PlanCall {
  std::shared_ptr<const Program> program;
  std::vector<Binding> buffers;  // input and output; scratch is the execution's own
  CallSignature signature;
  std::size_t element = 1;                     // bytes of an element
  int finish_over = 0;                         // contributions, for avg
  trace::Track* track = nullptr;               // outlives the execution; null: nobody watches
  const reduce::UserOperator* user = nullptr;  // as that; null: a built-in operator
};

class PlanExecution final : public Execution {
 public:
  /// Allocates everything that step() needs and connects to the program's peers.
  static Result<std::unique_ptr<PlanExecution>> create(PlanCall call, Links& links);
  Result<Step> step() override;
  void on_write_done(std::uint64_t cookie) noexcept override;
  const Counters& counters() const noexcept override { return counters_; }
  std::string waiting_for() const override;
  std::vector<Rank> awaited() const override;
  /// Of the program that runs: messages a slice.
  const plan::Traffic& planned() const noexcept { return call_.program->traffic; }
  /// Every buffer of the call is registered.
  bool registered() const noexcept;

 private:
  struct Lane {
    std::uint32_t number = 0;  // in the receive_ring
    std::uint32_t channel = 0;
    std::uint64_t instance = 0;  // slice being run
    std::uint32_t pc = 0;
    std::uint32_t unfinished_writes = 0;
    bool done = false;
    std::size_t scratch = 0;  // where its part of the scratch memory begins
  };

  explicit PlanExecution(PlanCall call, Links& links) : call_(std::move(call)), links_(links) {}
  Result<void> prepare();
  void choose_slices();
  Result<void> find_memory();
  Result<bool> run(Lane& lane);
  Result<bool> execute(Lane& lane, const Instruction& instruction);
  Result<bool> send(Lane& lane, const Instruction& instruction);
  Result<bool> gather(Lane& lane, const Instruction& instruction);
  Result<const std::byte*> message(Lane& lane, const Source& source, const Instruction& into);
  void combine(Lane& lane, const Instruction& instruction, std::span<const void* const> operands);
  bool end_of_instance(Lane& lane);
  // Null where nobody watches.
  trace::RowMarks* marks(const Lane& lane) noexcept {
    return marks_.empty() ? nullptr : &marks_[lane.number];
  }
  bool waits(const Lane& lane, std::string_view what, Rank peer) noexcept;
  Range range_of(const Lane& lane, plan::ChunkRef chunk) const noexcept;
  std::byte* address(const Lane& lane, plan::ChunkRef chunk) const noexcept;
  const MemoryRegion* region_of(plan::ChunkRef chunk) const noexcept;
  MessageHeader header_for(const Lane& lane, plan::ChunkRef chunk, std::uint32_t index,
                           Rank source) const noexcept;

  PlanCall call_;
  Links& links_;
  std::vector<Lane> lanes_;
  std::vector<trace::RowMarks> marks_;  // by lane; empty where nobody watches
  Links::Scratch scratch_;
  std::size_t scratch_bytes_ = 0;      // of a lane
  std::vector<SendRing*> send_rings_;  // by rank, null where the program sends nothing
  std::vector<const void*> operands_;
  Credits credits_;
  std::uint64_t per_slice_ = 1;  // elements
  std::uint64_t instances_ = 1;
  std::uint64_t lane_step_ = 1;  // instances between two of a lane
  Counters counters_;
};

}  // namespace gdrx::exec
