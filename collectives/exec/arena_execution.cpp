// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/arena_execution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "collectives/reduce/reducer.hpp"

namespace gdrx::exec {
namespace {

// Outputs that together exceed the caches are written around them.
constexpr std::uint64_t kStreamingBytes = 8 * 1024 * 1024;
// For a write that the kernel has begun: microseconds, but on a machine with many more threads than
// processors.
constexpr std::chrono::seconds kWritesEnd{10};

// Says that this thread writes to others, for as long as it lives.
class Writing {
 public:
  explicit Writing(ArenaLine& line) : line_(line) {
    thread_local const std::int32_t self = own_thread();
    // seq_cst, and the lock of the memory map that the kernel takes behind it: before it looks at a
    // gate, so that either it finds the gate closed, or who closed it finds this.
    line.writing.store(self, std::memory_order_seq_cst);
  }
  // release: what was written, was before whoever waits for this uses his memory anew
  ~Writing() { line_.writing.store(0, std::memory_order_release); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  ArenaLine& line_;
};

}  // namespace

ArenaExecution::ArenaExecution(ArenaSeat& seat, const ArenaCall& call)
    : seat_(seat),
      layout_(seat.layout()),
      self_(seat.self()),
      call_(call),
      two_shot_(call.signature.algorithm == plan::Algorithm::two_shot),
      writes_(two_shot_ && !call.processes.empty()),
      element_(size_of(call.signature.type)),
      per_block_(layout_.block() / element_) {
  const std::uint64_t count = call.signature.count;
  const auto ranks = static_cast<std::uint64_t>(layout_.ranks());
  streaming_ = count * element_ * ranks > kStreamingBytes;
  blocks_ = std::max<std::uint64_t>(1, (count + per_block_ - 1) / per_block_);
  stages_ = blocks_ + (two_shot_ ? 2 : 1);
  // relaxed: the post publishes it
  layout_.line(self_).output.store(reinterpret_cast<std::uint64_t>(call_.output),
                                   std::memory_order_relaxed);
  if (writes_) layout_.line(self_).gate.store(call_.gate->address(), std::memory_order_relaxed);
  if (call.track != nullptr) marks_.emplace(*call.track, trace::Row::shared_memory);
  counters_.slices = blocks_;
}

ArenaExecution::~ArenaExecution() {
  if (!writes_ || next_ == stages_) return;
  // Who has read the address and is stopped before he writes finds the gate closed when he goes on.
  call_.gate->close();
  const auto until = std::chrono::steady_clock::now() + kWritesEnd;
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    if (rank == self_) continue;
    const std::int32_t process = call_.processes[static_cast<std::size_t>(rank)].pid;
    // seq_cst: of a write that the kernel began before the gate was closed, this is seen. Acquire
    // is in it: a write that has ended is there.
    while (const std::int32_t writer = layout_.line(rank).writing.load(std::memory_order_seq_cst)) {
      if (!is_running(process, writer) || std::chrono::steady_clock::now() > until) break;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
}

Range ArenaExecution::block_range(std::uint64_t block) const noexcept {
  const std::uint64_t begin = block * per_block_;
  return {begin,
          std::min(per_block_, call_.signature.count - std::min(begin, call_.signature.count))};
}

Range ArenaExecution::own_part(const Range& block) const noexcept {
  return Partition{block.count, static_cast<std::uint32_t>(layout_.ranks())}.chunk(
      static_cast<std::uint32_t>(self_));
}

Result<Step> ArenaExecution::step() {
  if (marks_ && !marks_->has_chunk()) marks_->begin_chunk("stage", next_, layout_.block());
  if (!may_go_on()) {
    if (marks_) marks_->waits("wait for", waiting_for_, layout_.block());
    return Step::idle;
  }
  if (marks_) marks_->goes_on();
  if (next_ == 1) GDRX_TRY(meet());
  GDRX_TRY(run_stage(next_));
  ++next_;
  const bool last = next_ == stages_;
  publish(last);
  if (marks_) marks_->end_chunk();
  waiting_for_ = 0;
  return last ? Step::done : Step::advanced;
}

// What the last stage ends with, nobody waits for: the next call's post says it, too.
void ArenaExecution::publish(bool last) noexcept {
  if (next_ == 1) return seat_.post(ArenaSeat::kAll);
  // release: publishes slots and results written above
  if (!last) layout_.line(self_).stage.store(call_.base + next_, std::memory_order_release);
}

bool ArenaExecution::has_reached(int rank, std::uint64_t stage) const noexcept {
  if (stage == 1) return rank == self_ || seat_.has_come(rank);
  // acquire: pairs with the release in publish(), so that what they wrote is seen
  return layout_.line(rank).stage.load(std::memory_order_acquire) >= call_.base + stage;
}

bool ArenaExecution::may_go_on() noexcept {
  if (next_ == 0) return true;
  while (waiting_for_ < layout_.ranks()) {
    if (!has_reached(waiting_for_, next_)) return false;
    ++waiting_for_;
  }
  return true;
}

// Everybody has posted by now.
Result<void> ArenaExecution::meet() {
  seat_.all_have_come();
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    if (rank != self_) GDRX_TRY(seat_.check(rank));
  }
  return {};
}

std::vector<Rank> ArenaExecution::awaited() const {
  std::vector<Rank> late;
  if (next_ == 0) return late;
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    if (!has_reached(rank, next_)) late.push_back(Rank{rank});
  }
  return late;
}

std::string ArenaExecution::waiting_for() const {
  return exec::waiting_for(awaited(), fmt::format("finish stage {} of {}", next_, stages_));
}

Result<void> ArenaExecution::run_stage(std::uint64_t t) {
  // The oldest block first: its data is the likeliest to leave the cache next.
  if (two_shot_ && t >= 2) copy_out(t - 2);
  if (t >= 1 && t <= blocks_) {
    reduce_block(t - 1);
    if (writes_) GDRX_TRY(write_out(t - 1));
  }
  if (t < blocks_) copy_in(t);
  return {};
}

trace::Span ArenaExecution::step_mark(const char* what, std::uint64_t block) noexcept {
  if (!marks_) return {};
  return marks_->step(
      what,
      {block_range(block).count * element_, trace::kNobody, static_cast<std::uint32_t>(block), {}});
}

void ArenaExecution::copy_in(std::uint64_t block) noexcept {
  const trace::Span mark = step_mark("copy in", block);
  const Range range = block_range(block);
  const std::byte* from = call_.input + range.begin * element_;
  std::byte* to = layout_.slot(call_.base + block, self_);
  Range own{range.count, 0};  // one-shot: everybody reads everything
  if (two_shot_) own = own_part(range);
  // A rank reads its own slice from its own input.
  reduce::copy(to, from, own.begin * element_);
  const std::uint64_t behind = own.begin + own.count;
  reduce::copy(to + behind * element_, from + behind * element_, (range.count - behind) * element_);
  counters_.sent += static_cast<std::uint64_t>(layout_.ranks() - 1);
}

void ArenaExecution::reduce_block(std::uint64_t block) noexcept {
  const trace::Span mark = step_mark("reduce", block);
  const Range range = block_range(block);
  const Range part = two_shot_ ? own_part(range) : Range{0, range.count};
  const std::span<const void*> operands = seat_.operands();
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    const std::byte* from = call_.input + range.begin * element_;
    if (rank != self_) {
      from = layout_.slot(call_.base + block, rank);
      ++counters_.received;
    }
    operands[static_cast<std::size_t>(rank)] = from + part.begin * element_;
  }
  std::byte* target = two_shot_ && !writes_ ? layout_.result(call_.base + block)
                                            : call_.output + range.begin * element_;
  target += part.begin * element_;
  if (call_.user == nullptr) {
    const int finish = call_.signature.op == ReduceOp::avg ? layout_.ranks() : 0;
    reduce::reduce(target, operands, part.count, call_.signature.type, call_.signature.op, finish);
  } else {
    reduce::reduce_by(*call_.user, target, operands, part.count, call_.signature.type);
  }
  if (two_shot_) counters_.sent += static_cast<std::uint64_t>(layout_.ranks() - 1);
}

// Nobody else reads or writes this slice of anybody's buffers, so it does not matter whether they
// work in place.
Result<void> ArenaExecution::write_out(std::uint64_t block) {
  const trace::Span mark = step_mark("write out", block);
  const Range range = block_range(block);
  const Range part = own_part(range);
  if (part.count == 0) return {};
  const std::uint64_t offset = (range.begin + part.begin) * element_;
  const int ranks = layout_.ranks();
  {
    const Writing writing(layout_.line(self_));
    for (int step = 1; step < ranks; ++step) {  // not all to the same one at once
      const auto rank = static_cast<std::size_t>((self_ + step) % ranks);
      if (!unwritable_.empty() && unwritable_[rank]) continue;
      // relaxed: all_reached() has acquired it
      const ArenaLine& line = layout_.line(static_cast<int>(rank));
      switch (write_process(call_.processes[rank].pid, line.gate.load(std::memory_order_relaxed),
                            line.output.load(std::memory_order_relaxed) + offset,
                            {call_.output + offset, part.count * element_})) {
        case Written::all:
          break;
        case Written::refused:
          return fail(Errc::peer_lost, fmt::format("rank {} has given the call up", rank));
        case Written::gone:
          return fail(Errc::peer_lost, fmt::format("the process of rank {} is gone", rank));
        case Written::not_so:
          unwritable_.resize(static_cast<std::size_t>(ranks));
          unwritable_[rank] = true;
          break;
      }
    }
  }
  if (!unwritable_.empty()) keep(block, part);
  return {};
}

// For all: whom it was written to copies the same bytes once more.
void ArenaExecution::keep(std::uint64_t block, const Range& part) noexcept {
  const std::byte* from = call_.output + (block_range(block).begin + part.begin) * element_;
  reduce::copy(layout_.result(call_.base + block) + part.begin * element_, from,
               part.count * element_);
  std::atomic<std::uint64_t>& kept = layout_.line(self_).kept;
  // relaxed: published by the stage, and nobody else writes it
  if (kept.load(std::memory_order_relaxed) <= call_.base) {
    kept.store(call_.base + block + 1, std::memory_order_relaxed);
  }
}

// Where the others have written their slices, it is enough that they have.
void ArenaExecution::copy_out(std::uint64_t block) noexcept {
  counters_.received += static_cast<std::uint64_t>(layout_.ranks() - 1);
  if (writes_) return copy_kept(block);
  const trace::Span mark = step_mark("copy out", block);
  const Range range = block_range(block);
  reduce::copy(call_.output + range.begin * element_, layout_.result(call_.base + block),
               range.count * element_, streaming_);
}

// A rank that is done may have begun the next call. It keeps nothing of that before this one has
// begun it, too, so that what is read here is of this call or of an earlier one.
void ArenaExecution::copy_kept(std::uint64_t block) noexcept {
  const Range range = block_range(block);
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    const std::uint64_t kept = layout_.line(rank).kept.load(std::memory_order_relaxed);
    if (rank == self_ || kept <= call_.base || kept > call_.base + block + 1) continue;
    const Range part = Partition{range.count, static_cast<std::uint32_t>(layout_.ranks())}.chunk(
        static_cast<std::uint32_t>(rank));
    reduce::copy(call_.output + (range.begin + part.begin) * element_,
                 layout_.result(call_.base + block) + part.begin * element_, part.count * element_);
  }
}

}  // namespace gdrx::exec
