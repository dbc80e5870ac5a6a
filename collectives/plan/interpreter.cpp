// SPDX-License-Identifier: Apache-2.0
#include "collectives/plan/interpreter.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/plan/leaf_tree.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::plan {

Interpreter::Interpreter(const Plan& plan, bool in_place)
    : plan_(plan),
      in_place_(in_place),
      causal_(plan.spec.ranks <= kCausalRanks),
      expressions_(in_rank_order(plan.spec.collective, plan.spec.algorithm) ? Sides::kept
                                                                            : Sides::sorted) {
  const std::size_t clocks = plan.ranks.size() * plan.shape.channels;
  for (std::int32_t rank = 0; rank < plan.spec.ranks; ++rank) {
    const RankProgram& program = plan.ranks[static_cast<std::size_t>(rank)];
    memory_.emplace_back(plan.shape.input_chunks + plan.shape.output_chunks +
                         program.scratch_chunks);
    contribute(rank);
    for (std::uint32_t channel = 0; channel < plan.shape.channels; ++channel) {
      Program state;
      state.ops = &program.channels[channel];
      state.rank = rank;
      state.channel = channel;
      if (causal_) state.clock.resize(clocks);
      programs_.push_back(std::move(state));
    }
  }
}

// Of leaves each has a number of its own, as if it were a rank.
void Interpreter::contribute(std::int32_t rank) {
  const bool has_leaves = traits_of(plan_.spec.collective).has_leaves();
  const std::uint32_t parts = has_leaves ? plan_.shape.output_chunks : plan_.shape.input_chunks;
  const std::int32_t first = has_leaves ? leaves_before(plan_.spec, rank) : rank;
  const std::int32_t count = has_leaves ? leaves_of(plan_.spec, rank) : 1;
  for (std::uint32_t c = 0; c < parts * static_cast<std::uint32_t>(count); ++c) {
    memory_.back()[cell_of(rank, {Buffer::input, c, 0})].value =
        expressions_.leaf(first + static_cast<std::int32_t>(c / parts), c % parts);
  }
}

std::uint32_t Interpreter::cell_of(std::int32_t rank, ChunkRef chunk) const {
  const std::uint32_t inputs = plan_.shape.input_chunks;
  const auto self = static_cast<std::uint32_t>(rank);
  switch (chunk.buffer) {
    case Buffer::input:
      return chunk.chunk;
    case Buffer::scratch:
      return inputs + plan_.shape.output_chunks + chunk.chunk;
    case Buffer::output:
      break;
  }
  const CollectiveTraits& traits = traits_of(plan_.spec.collective);
  if (in_place_ && !traits.has_leaves()) {  // the input's own cell, where the API says that both
                                            // are the same memory
    const bool blocks_in = traits.input == Extent::all;
    const bool blocks_out = traits.output == Extent::all;
    if (blocks_in == blocks_out) return chunk.chunk;
    if (blocks_in) return self;
    if (chunk.chunk == self) return 0;
  }
  return inputs + chunk.chunk;
}

// Chunks of one class have one length. Blocks of reduce-scatter and all-gather are all alike, and
// so is each part of every leaf.
std::uint32_t Interpreter::class_of(std::int32_t, ChunkRef chunk) const {
  const std::uint32_t number = chunk.buffer == Buffer::scratch ? chunk.like : chunk.chunk;
  if (traits_of(plan_.spec.collective).has_leaves()) return number % plan_.shape.output_chunks;
  return plan_.shape.input_chunks == plan_.shape.output_chunks ? number : 0;
}

tl::unexpected<Error> Interpreter::wrong(const Program& program, const std::string& what) const {
  return fail(Errc::invalid_argument,
              fmt::format("rank {} channel {} op {}{}: {}", program.rank, program.channel,
                          program.pc, in_place_ ? " (in place)" : "", what));
}

Result<void> Interpreter::run() {
  for (const Program& program : programs_) wake(program.rank, program.channel);
  while (!ready_.empty()) {
    Program& program = programs_[static_cast<std::size_t>(ready_.front())];
    ready_.pop_front();
    while (program.pc < program.ops->size()) {
      if (GDRX_TRY(step(program)) == Step::blocked) break;
      ++program.pc;
    }
  }
  for (const Program& program : programs_) {
    if (program.pc < program.ops->size()) return wrong(program, "waits for ever");
  }
  for (const auto& [key, messages] : queues_) {
    if (!messages.empty()) {
      return fail(Errc::invalid_argument,
                  fmt::format("rank {} never receives {} message(s) of rank {}", std::get<1>(key),
                              messages.size(), std::get<0>(key)));
    }
  }
  return {};
}

Result<Interpreter::Step> Interpreter::step(Program& program) {
  const Op& op = (*program.ops)[program.pc];
  GDRX_TRY(check(program, op));
  switch (op.kind) {
    case OpKind::send:
      return send(program, op);
    case OpKind::recv_copy:
    case OpKind::recv_reduce:
      return receive(program, op);
    case OpKind::copy:
    case OpKind::reduce:
      return local(program, op);
    case OpKind::wait:
      return wait(program, op);
  }
  return wrong(program, "an op of no kind");
}

Result<void> Interpreter::check(const Program& program, const Op& op) const {
  const RankProgram& own = plan_.ranks[static_cast<std::size_t>(program.rank)];
  const auto exists = [&](ChunkRef chunk) {
    const std::uint64_t end = std::uint64_t{chunk.chunk} + chunk.count;
    switch (chunk.buffer) {
      case Buffer::input:
        return end <= plan_.shape.input_chunks;
      case Buffer::output:
        return end <= plan_.shape.output_chunks;
      case Buffer::scratch:
        return end <= own.scratch_chunks && chunk.like < plan_.shape.input_chunks;
    }
    return false;
  };
  const bool talks =
      op.kind == OpKind::send || op.kind == OpKind::recv_copy || op.kind == OpKind::recv_reduce;
  if (talks && (index(op.peer) < 0 || index(op.peer) >= plan_.spec.ranks ||
                index(op.peer) == program.rank)) {
    return wrong(program, fmt::format("talks to rank {}", index(op.peer)));
  }
  if (op.finish && (op.kind == OpKind::send || op.kind == OpKind::wait)) {
    return wrong(program, "says that it completes a reduction and does not");
  }
  if (!exists(op.src) || !exists(op.dst)) {
    return wrong(program, "names a chunk that does not exist");
  }
  if (op.src.count != 1 || op.dst.count != 1) return check_ranges(program, op);
  return check_rounding(program, op);
}

// Operations that follow each other into one chunk are rounded once. Of leaves each is: it stands
// behind a copy of its left operand.
Result<void> Interpreter::check_rounding(const Program& program, const Op& op) const {
  const bool reduces = op.kind == OpKind::reduce || op.kind == OpKind::recv_reduce;
  if (!reduces || !traits_of(plan_.spec.collective).has_leaves()) return {};
  const Op* const before = program.pc > 0 ? &(*program.ops)[program.pc - 1] : nullptr;
  if (op.kind == OpKind::reduce && before != nullptr && before->kind == OpKind::copy &&
      before->dst == op.dst) {
    return {};
  }
  return wrong(program, "is not rounded by itself: no copy of its left operand stands before it");
}

// A range is one run of memory in the caller's vector, and an op never shifts a range over itself.
// Leaves are a vector each.
Result<void> Interpreter::check_ranges(const Program& program, const Op& op) const {
  const bool one_vector = plan_.shape.input_chunks == plan_.shape.output_chunks &&
                          !traits_of(plan_.spec.collective).has_leaves();
  const auto in_vector = [&](ChunkRef chunk) {
    return chunk.count == 1 || (chunk.count > 1 && chunk.buffer != Buffer::scratch && one_vector);
  };
  if (!in_vector(op.src) || !in_vector(op.dst)) {
    return wrong(program, "names a range of chunks that do not lie beside each other");
  }
  const bool reads = op.kind != OpKind::recv_copy;
  const bool writes = op.kind != OpKind::send && op.kind != OpKind::wait;
  if (!reads || !writes) return {};
  if (op.src.count != op.dst.count) return wrong(program, "combines ranges of different lengths");
  const std::uint32_t from = cell_of(program.rank, op.src);
  const std::uint32_t to = cell_of(program.rank, op.dst);
  if (from != to && from < to + op.dst.count && to < from + op.src.count) {
    return wrong(program, "shifts a range over itself");
  }
  return {};
}

bool Interpreter::ordered(const Program& program, std::int32_t other, std::uint32_t time) const {
  return !causal_ || program.clock[static_cast<std::size_t>(other)] >= time;
}

Result<Interpreter::Values> Interpreter::read(Program& program, ChunkRef chunk) {
  Values values;
  values.reserve(chunk.count);
  const std::uint32_t first = cell_of(program.rank, chunk);
  for (std::uint32_t i = 0; i < chunk.count; ++i) {
    values.push_back(GDRX_TRY(read_cell(program, first + i)));
  }
  return values;
}

Result<void> Interpreter::write(Program& program, const Op& op, const Values& values) {
  if (op.dst.buffer == Buffer::input) return wrong(program, "writes the caller's input");
  const std::uint32_t first = cell_of(program.rank, op.dst);
  for (std::uint32_t i = 0; i < op.dst.count; ++i) {
    GDRX_TRY(check_finish(program, op, values[i]));
    GDRX_TRY(write_cell(program, first + i, values[i]));
  }
  return {};
}

Interpreter::Values Interpreter::combine(Values left, const Values& right) {
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = expressions_.combine(left[i], right[i]);
  return left;
}

Result<ExpressionId> Interpreter::read_cell(Program& program, std::uint32_t number) {
  Cell& source = cell(program.rank, number);
  const auto self = static_cast<std::int32_t>(&program - programs_.data());
  if (source.writer >= 0 && source.writer != self &&
      !ordered(program, source.writer, source.written)) {
    return wrong(program, "reads what another channel may still be writing");
  }
  if (source.value == kUndefined) return wrong(program, "reads a chunk that holds nothing yet");
  if (plan_.shape.channels > 1) source.reads[self] = program.time + 1;
  return source.value;
}

Result<void> Interpreter::write_cell(Program& program, std::uint32_t number, ExpressionId value) {
  Cell& target = cell(program.rank, number);
  const auto self = static_cast<std::int32_t>(&program - programs_.data());
  for (const auto& [reader, time] : target.reads) {
    if (reader != self && !ordered(program, reader, time)) {
      return wrong(program, "overwrites what another channel may still be reading");
    }
  }
  if (target.writer >= 0 && target.writer != self &&
      !ordered(program, target.writer, target.written)) {
    return wrong(program, "races with another channel's write");
  }
  const std::uint32_t channels = plan_.shape.channels;
  for (std::uint32_t c = 0; causal_ && c < channels; ++c) {
    const Program& sender = programs_[static_cast<std::size_t>(program.rank) * channels + c];
    for (const Send& send : sender.sends) {
      if (!send.reads(number) || send.waited) continue;
      if (send.consumed == 0 || !ordered(program, send.to, send.consumed)) {
        return wrong(program, "overwrites a chunk that an unfinished send may still read");
      }
    }
  }
  target.value = value;
  target.writer = self;
  target.written = program.time + 1;
  target.reads.clear();
  return {};
}

Result<void> Interpreter::check_finish(const Program& program, const Op& op,
                                       ExpressionId value) const {
  const bool has_leaves = traits_of(plan_.spec.collective).has_leaves();
  if (plan_.spec.ranks == 1 && !has_leaves) return {};
  const std::int32_t all = has_leaves ? leaves_of(plan_.spec) : plan_.spec.ranks;
  const bool combines = op.kind == OpKind::recv_reduce || op.kind == OpKind::reduce;
  const bool complete = combines && expressions_.leaves(value) == static_cast<std::uint64_t>(all);
  if (complete == op.finish) return {};
  return wrong(program, complete ? "completes a reduction without saying so"
                                 : "says that it completes a reduction and does not");
}

Result<Interpreter::Step> Interpreter::send(Program& program, const Op& op) {
  auto& messages = queue(program.rank, index(op.peer), program.channel);
  if (messages.size() >= plan_.shape.credits) return Step::blocked;
  Message message;
  message.values = GDRX_TRY(read(program, op.src));
  message.length_class = class_of(program.rank, op.src);
  ++program.time;
  if (causal_) {
    const auto self = static_cast<std::size_t>(&program - programs_.data());
    program.clock[self] = program.time;
    message.clock = program.clock;
    message.send = static_cast<std::uint32_t>(program.sends.size());
    program.sends.push_back({cell_of(program.rank, op.src), op.src.count,
                             index(op.peer) * static_cast<std::int32_t>(plan_.shape.channels) +
                                 static_cast<std::int32_t>(program.channel),
                             0, false});
  }
  messages.push_back(std::move(message));
  ++messages_;
  wake(index(op.peer), program.channel);
  return Step::done;
}

Result<Interpreter::Step> Interpreter::receive(Program& program, const Op& op) {
  auto& messages = queue(index(op.peer), program.rank, program.channel);
  if (messages.empty()) return Step::blocked;
  Message message = std::move(messages.front());
  messages.pop_front();
  if (message.length_class != class_of(program.rank, op.dst) ||
      message.values.size() != op.dst.count) {
    return wrong(program, "receives a message of another chunk's length");
  }
  ++program.time;
  if (causal_) {
    const auto self = static_cast<std::size_t>(&program - programs_.data());
    for (std::size_t i = 0; i < program.clock.size(); ++i) {
      program.clock[i] = std::max(program.clock[i], message.clock[i]);
    }
    program.clock[self] = program.time;
    Program& sender = programs_[static_cast<std::size_t>(index(op.peer)) * plan_.shape.channels +
                                program.channel];
    sender.sends[message.send].consumed = program.time;
  }
  wake(index(op.peer), program.channel);  // a credit, or a wait that ends
  if (op.kind == OpKind::recv_reduce) {
    if (class_of(program.rank, op.src) != class_of(program.rank, op.dst)) {
      return wrong(program, "combines chunks of different lengths");
    }
    message.values = combine(GDRX_TRY(read(program, op.src)), message.values);
  }
  GDRX_TRY(write(program, op, message.values));
  return Step::done;
}

Result<Interpreter::Step> Interpreter::local(Program& program, const Op& op) {
  if (class_of(program.rank, op.src) != class_of(program.rank, op.dst)) {
    return wrong(program, "copies between chunks of different lengths");
  }
  Values values = GDRX_TRY(read(program, op.src));
  if (op.kind == OpKind::reduce) values = combine(GDRX_TRY(read(program, op.dst)), values);
  const bool same_cell =
      cell_of(program.rank, op.src) == cell_of(program.rank, op.dst) && op.kind == OpKind::copy;
  ++program.time;
  if (causal_) program.clock[static_cast<std::size_t>(&program - programs_.data())] = program.time;
  if (!same_cell) GDRX_TRY(write(program, op, values));  // in place it is no copy at all
  return Step::done;
}

Interpreter::Step Interpreter::wait(Program& program, const Op& op) {
  const std::uint32_t first = cell_of(program.rank, op.src);
  for (Send& send : program.sends) {
    if (first >= send.cell + send.count || send.cell >= first + op.src.count) continue;
    if (send.consumed == 0) return Step::blocked;
    send.waited = true;
  }
  return Step::done;
}

ExpressionId Interpreter::value(std::int32_t rank, ChunkRef chunk) {
  return cell(rank, cell_of(rank, chunk)).value;
}

}  // namespace gdrx::plan
