// SPDX-License-Identifier: Apache-2.0
// A plan's rank program made ready to run: receives that follow each other into one chunk become
// one multi-source reduction, so that narrow floats are rounded once and memory is written once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gdrx/plan.hpp"

namespace gdrx::exec {

/// One operand of a gather: a local chunk or the next message from a peer.
struct Source {
  bool local = true;
  plan::ChunkRef chunk;     // local
  Rank peer{};              // remote
  std::uint32_t index = 0;  // remote: k-th message of (peer, self, channel)
};

struct Instruction {
  enum class Kind : std::uint8_t { send, gather, wait };
  Kind kind = Kind::send;
  bool finish = false;
  Rank peer{};                     // send
  std::uint32_t index = 0;         // send: k-th message of (self, peer, channel)
  plan::ChunkRef chunk;            // send: source; gather: destination
  std::uint32_t first_source = 0;  // gather: into Program::sources
  std::uint32_t source_count = 0;
};

struct ChannelProgram {
  std::vector<Instruction> code;
  std::vector<Source> sources;
};

struct Program {
  std::vector<ChannelProgram> channels;
  std::uint32_t scratch_chunks = 0;
  std::uint32_t widest_gather = 1;
  std::uint32_t widest_range = 1;  // chunks in one message
  plan::Traffic traffic;
  /// The same with a message a chunk, for vectors whose chunks are cut; null if this is that.
  std::shared_ptr<const Program> by_chunk;
};

Program compile(const plan::RankProgram& program);

}  // namespace gdrx::exec
