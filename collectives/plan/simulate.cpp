// SPDX-License-Identifier: Apache-2.0
// A discrete-event simulation: events in order of time, so that messages take links in the order in
// which they come.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>

#include "gdrx/plan_simulate.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::plan {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

/// An op of a program: what may have held another one up.
struct OpId {
  std::uint32_t program = kNone;
  std::uint32_t op = 0;
};

class Simulation {
 public:
  Simulation(const Plan& plan, Bytes size, const Costs& costs)
      : plan_(plan), costs_(costs), channels_(plan.shape.channels) {
    const bool leaves = traits_of(plan.spec.collective).has_leaves();  // a vector each
    const std::uint32_t parts = leaves
                                    ? plan.shape.output_chunks
                                    : std::max(plan.shape.input_chunks, plan.shape.output_chunks);
    chunk_bytes_ = static_cast<double>(size) / std::max(1u, parts);
    in_port_.resize(plan.ranks.size());
    out_port_.resize(plan.ranks.size());
    for (const RankProgram& rank : plan.ranks) {
      for (const Channel& channel : rank.channels) {
        programs_.push_back({&channel, 0, State::next, {}, std::vector<Trace>(channel.size())});
      }
    }
  }

  Result<Prediction> run() {
    for (std::uint32_t p = 0; p < programs_.size(); ++p) at(0, Event::Kind::resume, p);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      switch (event.kind) {
        case Event::Kind::resume:
          resume(event.subject);
          break;
        case Event::Kind::arrive:
          arrive(event.subject);
          break;
        case Event::Kind::deliver:
          deliver(event.subject);
          break;
      }
    }
    return result();
  }

 private:
  struct Trace {
    double begin = 0;
    double end = 0;
    OpId cause;  // what it had to wait for last
  };
  enum class State : std::uint8_t { next, waiting, busy };
  struct Program {
    const Channel* ops;
    std::uint32_t pc = 0;
    State state = State::next;
    std::vector<std::uint32_t> sent;  // messages not delivered yet
    std::vector<Trace> trace;
  };
  struct Message {
    OpId sender;
    std::uint32_t receiver = 0;  // program
    double bytes = 0;
  };
  struct Event {
    enum class Kind : std::uint8_t { resume, arrive, deliver };
    double time;
    std::uint64_t number;  // equal times: first come, first served
    Kind kind;
    std::uint32_t subject;  // program or message
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  /// From one program to another.
  struct Flow {
    std::uint32_t unconsumed = 0;
    std::uint32_t delivered = 0;  // of those
  };

  void at(double time, Event::Kind kind, std::uint32_t subject) {
    events_.push({time, ++events_made_, kind, subject});
  }
  double bytes_of(ChunkRef chunk) const { return chunk_bytes_ * chunk.count; }
  std::uint32_t rank_of(std::uint32_t program) const { return program / channels_; }
  std::uint32_t peer_of(std::uint32_t program, const Op& op) const {
    return static_cast<std::uint32_t>(index(op.peer)) * channels_ + program % channels_;
  }
  Flow& flow(std::uint32_t from, std::uint32_t to) { return flows_[{from, to}]; }

  // Runs a program until it must wait for an event.
  void resume(std::uint32_t p) {
    Program& program = programs_[p];
    while (program.pc < program.ops->size()) {
      const Op& op = (*program.ops)[program.pc];
      Trace& trace = program.trace[program.pc];
      if (program.state == State::next) {
        program.state = State::waiting;
        trace.begin = now_;
        if (program.pc > 0) trace.cause = {p, program.pc - 1};
      }
      if (program.state == State::waiting && !start(p, op, trace)) return;
      if (now_ < trace.end) return;  // busy
      ended(p, op);
      ++program.pc;
      program.state = State::next;
    }
  }

  // False if the op cannot start yet: what it waits for releases the program.
  bool start(std::uint32_t p, const Op& op, Trace& trace) {
    Program& program = programs_[p];
    double duration = 0;
    switch (op.kind) {
      case OpKind::send:
        if (flow(p, peer_of(p, op)).unconsumed >= plan_.shape.credits) return false;
        send(p, op);
        break;
      case OpKind::wait:
        for (const std::uint32_t sent : program.sent) {
          if (overlap((*program.ops)[messages_[sent].sender.op].src, op.src)) return false;
        }
        break;
      case OpKind::recv_copy:
      case OpKind::recv_reduce: {
        if (flow(peer_of(p, op), p).delivered == 0) return false;
        const double per_byte = op.kind == OpKind::recv_copy ? costs_.copy_us : costs_.gamma_us;
        duration = bytes_of(op.dst) * per_byte;
        break;
      }
      case OpKind::copy:
        duration = bytes_of(op.dst) * costs_.copy_us;
        break;
      case OpKind::reduce:
        duration = bytes_of(op.dst) * costs_.gamma_us;
        break;
    }
    program.state = State::busy;
    trace.end = now_ + duration;
    if (duration > 0) at(trace.end, Event::Kind::resume, p);
    return true;
  }

  static bool overlap(ChunkRef a, ChunkRef b) {
    return a.buffer == b.buffer && a.chunk < b.chunk + b.count && b.chunk < a.chunk + a.count;
  }

  void send(std::uint32_t p, const Op& op) {
    Program& program = programs_[p];
    const auto number = static_cast<std::uint32_t>(messages_.size());
    const std::uint32_t to = peer_of(p, op);
    messages_.push_back({{p, program.pc}, to, bytes_of(op.src)});
    program.sent.push_back(number);
    ++flow(p, to).unconsumed;
    double& free =
        costs_.links == Links::port ? out_port_[rank_of(p)] : pair_link_[{rank_of(p), rank_of(to)}];
    const double begin = std::max(now_, free) + costs_.overhead_us;
    free = begin + messages_.back().bytes * costs_.beta_us;
    at(begin + costs_.alpha_us, Event::Kind::arrive, number);
  }

  // The first byte is at the receiver, whose port may still be busy: the network holds the rest.
  void arrive(std::uint32_t number) {
    const Message& message = messages_[number];
    const double transfer = message.bytes * costs_.beta_us;
    double begin = now_;
    if (costs_.links == Links::port) {
      double& free = in_port_[rank_of(message.receiver)];
      begin = std::max(now_, free);
      free = begin + transfer;
    }
    at(begin + transfer, Event::Kind::deliver, number);
  }

  void deliver(std::uint32_t number) {
    const Message& message = messages_[number];
    Program& sender = programs_[message.sender.program];
    sender.trace[message.sender.op].end = now_;
    std::erase(sender.sent, number);
    flow(message.sender.program, message.receiver).delivered += 1;
    const Op* waiting = waiting_op(message.receiver);
    if (waiting != nullptr && receives(*waiting) &&
        peer_of(message.receiver, *waiting) == message.sender.program) {
      release(message.receiver, message.sender);
    }
    waiting = waiting_op(message.sender.program);
    if (waiting != nullptr && waiting->kind == OpKind::wait) {
      release(message.sender.program, message.sender);
    }
  }

  // Consumes the message that an ended receive has used.
  void ended(std::uint32_t p, const Op& op) {
    if (!receives(op)) return;
    const std::uint32_t from = peer_of(p, op);
    Flow& messages = flow(from, p);
    --messages.delivered;
    --messages.unconsumed;
    const Op* waiting = waiting_op(from);
    if (waiting != nullptr && waiting->kind == OpKind::send && peer_of(from, *waiting) == p) {
      release(from, {p, programs_[p].pc});  // a credit
    }
  }

  static bool receives(const Op& op) {
    return op.kind == OpKind::recv_copy || op.kind == OpKind::recv_reduce;
  }
  /// The op that a program stands still before, if it does.
  const Op* waiting_op(std::uint32_t p) const {
    const Program& program = programs_[p];
    return program.state == State::waiting ? &(*program.ops)[program.pc] : nullptr;
  }

  // Lets a program that waits look again, at this same time.
  void release(std::uint32_t p, OpId by) {
    Program& program = programs_[p];
    Trace& trace = program.trace[program.pc];
    if (trace.begin < now_) trace.cause = by;
    at(now_, Event::Kind::resume, p);
  }

  Result<Prediction> result() const {
    Prediction prediction;
    prediction.finish_us.resize(plan_.ranks.size());
    OpId last;
    for (std::uint32_t p = 0; p < programs_.size(); ++p) {
      const Program& program = programs_[p];
      if (program.pc < program.ops->size()) {
        return fail(Errc::invalid_argument, fmt::format("rank {} channel {} op {}: waits for ever",
                                                        rank_of(p), p % channels_, program.pc));
      }
      for (std::uint32_t i = 0; i < program.trace.size(); ++i) {
        if ((*program.ops)[i].kind == OpKind::send) continue;  // its end is the receiver's matter
        double& finish = prediction.finish_us[rank_of(p)];
        finish = std::max(finish, program.trace[i].end);
        if (last.program == kNone || program.trace[i].end > prediction.time_us) last = {p, i};
        prediction.time_us = std::max(prediction.time_us, program.trace[i].end);
      }
    }
    prediction.messages = messages_.size();
    for (const Message& message : messages_) prediction.bytes += message.bytes;
    for (; last.program != kNone; last = trace_of(last).cause) {
      const Trace& trace = trace_of(last);
      prediction.critical_path.push_back({Rank{static_cast<std::int32_t>(rank_of(last.program))},
                                          last.program % channels_, last.op, trace.begin,
                                          trace.end});
    }
    std::reverse(prediction.critical_path.begin(), prediction.critical_path.end());
    return prediction;
  }
  const Trace& trace_of(OpId id) const { return programs_[id.program].trace[id.op]; }

  const Plan& plan_;
  const Costs costs_;
  const std::uint32_t channels_;
  double chunk_bytes_ = 0;
  double now_ = 0;
  std::vector<Program> programs_;
  std::vector<Message> messages_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Flow> flows_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> pair_link_;  // free from then on
  std::vector<double> in_port_;
  std::vector<double> out_port_;
  std::priority_queue<Event> events_;
  std::uint64_t events_made_ = 0;
};

Result<void> check(const Plan& plan, const Costs& costs) {
  for (const double cost :
       {costs.alpha_us, costs.overhead_us, costs.beta_us, costs.gamma_us, costs.copy_us}) {
    if (!(cost >= 0) || !std::isfinite(cost)) {
      return fail(Errc::invalid_argument, "a cost of the simulation is negative or no number");
    }
  }
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    if (plan.ranks[rank].channels.size() != plan.shape.channels) {
      return fail(Errc::invalid_argument,
                  fmt::format("rank {} has not {} channels", rank, plan.shape.channels));
    }
    for (const Channel& channel : plan.ranks[rank].channels) {
      for (const Op& op : channel) {
        if (index(op.peer) >= 0 && static_cast<std::size_t>(index(op.peer)) < plan.ranks.size()) {
          continue;
        }
        return fail(Errc::invalid_argument,
                    fmt::format("rank {} talks to rank {}", rank, index(op.peer)));
      }
    }
  }
  return {};
}

}  // namespace

Result<Prediction> simulate(const Plan& plan, Bytes size, const Costs& costs) {
  GDRX_TRY(check(plan, costs));
  return Simulation(plan, size, costs).run();
}

}  // namespace gdrx::plan
