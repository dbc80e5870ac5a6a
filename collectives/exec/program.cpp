// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/program.hpp"

#include <algorithm>
#include <map>

namespace gdrx::exec {
namespace {

using plan::OpKind;

/// Builds one channel; counts messages a peer so that both sides number them alike.
class ChannelCompiler {
 public:
  ChannelProgram run(const plan::Channel& channel) {
    for (const plan::Op& op : channel) add(op);
    return std::move(out_);
  }

 private:
  void add(const plan::Op& op) {
    switch (op.kind) {
      case OpKind::send: {
        Instruction& send = push(Instruction::Kind::send, op.src);
        send.peer = op.peer;
        send.index = sent_[op.peer]++;
        return;
      }
      case OpKind::wait:
        push(Instruction::Kind::wait, op.src);
        return;
      case OpKind::copy:
        begin_gather(op);
        add_source(local(op.src));
        return;
      case OpKind::recv_copy:
        begin_gather(op);
        add_source(remote(op.peer));
        return;
      case OpKind::recv_reduce:
        if (!continues(op.dst) || !(op.src == op.dst) || names(op.peer)) {
          begin_gather(op);
          add_source(local(op.src));
        }
        add_source(remote(op.peer));
        out_.code.back().finish = op.finish;
        return;
      case OpKind::reduce:
        if (!continues(op.dst)) {
          begin_gather(op);
          add_source(local(op.dst));
        }
        add_source(local(op.src));
        out_.code.back().finish = op.finish;
        return;
    }
  }

  Instruction& push(Instruction::Kind kind, plan::ChunkRef chunk) {
    Instruction instruction;
    instruction.kind = kind;
    instruction.chunk = chunk;
    instruction.first_source = static_cast<std::uint32_t>(out_.sources.size());
    out_.code.push_back(instruction);
    return out_.code.back();
  }

  void begin_gather(const plan::Op& op) {
    push(Instruction::Kind::gather, op.dst).finish = op.finish;
  }

  void add_source(const Source& source) {
    out_.sources.push_back(source);
    ++out_.code.back().source_count;
  }

  static Source local(plan::ChunkRef chunk) { return Source{true, chunk, Rank{}, 0}; }
  Source remote(Rank peer) { return Source{false, {}, peer, received_[peer]++}; }

  /// True if the last instruction gathers into `dst` and is not complete.
  bool continues(plan::ChunkRef dst) const {
    return !out_.code.empty() && out_.code.back().kind == Instruction::Kind::gather &&
           out_.code.back().chunk == dst && !out_.code.back().finish;
  }

  /// True if the last gather already waits for a message of `peer`: only one is at the head.
  bool names(Rank peer) const {
    const Instruction& last = out_.code.back();
    return std::any_of(out_.sources.begin() + last.first_source, out_.sources.end(),
                       [&](const Source& source) { return !source.local && source.peer == peer; });
  }

  ChannelProgram out_;
  std::map<Rank, std::uint32_t> sent_;
  std::map<Rank, std::uint32_t> received_;
};

}  // namespace

Program compile(const plan::RankProgram& program) {
  Program out;
  out.scratch_chunks = program.scratch_chunks;
  out.traffic = plan::traffic_of(program);
  for (const plan::Channel& channel : program.channels) {
    out.channels.push_back(ChannelCompiler().run(channel));
    for (const Instruction& instruction : out.channels.back().code) {
      out.widest_gather = std::max(out.widest_gather, instruction.source_count);
      out.widest_range = std::max(out.widest_range, instruction.chunk.count);
    }
  }
  if (out.widest_range > 1) {
    out.by_chunk = std::make_shared<const Program>(compile(plan::split_ranges(program)));
  }
  return out;
}

}  // namespace gdrx::exec
