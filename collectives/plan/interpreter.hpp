// SPDX-License-Identifier: Apache-2.0
// An abstract machine that runs a plan on expressions, and watches what is ordered by messages and
// what only by luck.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "collectives/plan/expression.hpp"
#include "gdrx/plan.hpp"

namespace gdrx::plan {

class Interpreter {
 public:
  Interpreter(const Plan& plan, bool in_place);
  /// Runs every program to its end. Errors name the rank, the channel and the op.
  Result<void> run();
  ExpressionId value(std::int32_t rank, ChunkRef chunk);
  Expressions& expressions() noexcept { return expressions_; }
  std::uint64_t messages() const noexcept { return messages_; }

 private:
  using Clock = std::vector<std::uint32_t>;  // a time for each program; empty where not kept
  using Values = std::vector<ExpressionId>;  // of a range of chunks
  struct Send {
    std::uint32_t cell = 0;
    std::uint32_t count = 1;
    std::int32_t to = 0;         // program that receives it
    std::uint32_t consumed = 0;  // that program's time, 0 while unconsumed
    bool waited = false;
    bool reads(std::uint32_t number) const { return number >= cell && number - cell < count; }
  };
  struct Message {
    Values values;
    std::uint32_t length_class = 0;
    std::uint32_t send = 0;  // of the sender's sends
    Clock clock;
  };
  struct Program {
    const Channel* ops = nullptr;
    std::int32_t rank = 0;
    std::uint32_t channel = 0;
    std::uint32_t pc = 0;
    std::uint32_t time = 0;
    Clock clock;
    std::vector<Send> sends;
  };
  struct Cell {
    ExpressionId value = kUndefined;
    std::int32_t writer = -1;  // program
    std::uint32_t written = 0;
    std::map<std::int32_t, std::uint32_t> reads;  // program, its time
  };
  enum class Step : std::uint8_t { blocked, done };

  void contribute(std::int32_t rank);
  Result<Step> step(Program& program);
  Result<Step> send(Program& program, const Op& op);
  Result<Step> receive(Program& program, const Op& op);
  Result<Step> local(Program& program, const Op& op);
  Step wait(Program& program, const Op& op);
  Result<void> check(const Program& program, const Op& op) const;
  Result<void> check_rounding(const Program& program, const Op& op) const;
  Result<void> check_ranges(const Program& program, const Op& op) const;
  Result<Values> read(Program& program, ChunkRef chunk);
  Result<void> write(Program& program, const Op& op, const Values& values);
  Values combine(Values left, const Values& right);
  Result<ExpressionId> read_cell(Program& program, std::uint32_t number);
  Result<void> write_cell(Program& program, std::uint32_t number, ExpressionId value);
  Result<void> check_finish(const Program& program, const Op& op, ExpressionId value) const;
  bool ordered(const Program& program, std::int32_t other, std::uint32_t time) const;
  tl::unexpected<Error> wrong(const Program& program, const std::string& what) const;
  std::uint32_t cell_of(std::int32_t rank, ChunkRef chunk) const;
  std::uint32_t class_of(std::int32_t rank, ChunkRef chunk) const;
  Cell& cell(std::int32_t rank, std::uint32_t number) {
    return memory_[static_cast<std::size_t>(rank)][number];
  }
  std::deque<Message>& queue(std::int32_t from, std::int32_t to, std::uint32_t channel) {
    return queues_[{from, to, channel}];
  }
  void wake(std::int32_t rank, std::uint32_t channel) {
    ready_.push_back(rank * static_cast<std::int32_t>(plan_.shape.channels) +
                     static_cast<std::int32_t>(channel));
  }

  const Plan& plan_;
  bool in_place_;
  bool causal_;
  Expressions expressions_;
  std::vector<std::vector<Cell>> memory_;
  std::vector<Program> programs_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::uint32_t>, std::deque<Message>> queues_;
  std::deque<std::int32_t> ready_;
  std::uint64_t messages_ = 0;
};

}  // namespace gdrx::plan
