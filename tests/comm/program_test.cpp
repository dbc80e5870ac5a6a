// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/program.hpp"

#include <gtest/gtest.h>

namespace gdrx::exec {
namespace {

using plan::Buffer;
using plan::Op;
using plan::OpKind;

plan::RankProgram program_of(std::vector<Op> ops) {
  plan::RankProgram program;
  program.channels.push_back(std::move(ops));
  return program;
}

constexpr plan::ChunkRef kIn{Buffer::input, 0, 0};
constexpr plan::ChunkRef kOut{Buffer::output, 0, 0};

TEST(Program, FusesReceivesIntoOneChunkToOneReductionInOrder) {
  const Program program = compile(program_of({
      Op{OpKind::recv_copy, false, Rank{0}, {}, kOut},
      Op{OpKind::reduce, false, {}, kIn, kOut},
      Op{OpKind::recv_reduce, true, Rank{2}, kOut, kOut},
  }));
  ASSERT_EQ(program.channels[0].code.size(), 1u);
  const Instruction& gather = program.channels[0].code[0];
  EXPECT_EQ(gather.source_count, 3u);
  EXPECT_TRUE(gather.finish);
  EXPECT_FALSE(program.channels[0].sources[0].local);
  EXPECT_TRUE(program.channels[0].sources[1].local);
  EXPECT_EQ(program.channels[0].sources[2].peer, Rank{2});
}

TEST(Program, KeepsTwoMessagesOfOnePeerApart) {
  const Program program = compile(program_of({
      Op{OpKind::recv_reduce, false, Rank{1}, kIn, kOut},
      Op{OpKind::recv_reduce, true, Rank{1}, kOut, kOut},
  }));
  ASSERT_EQ(program.channels[0].code.size(), 2u);
  EXPECT_EQ(program.channels[0].sources.back().index, 1u);
}

TEST(Program, NumbersMessagesByPeer) {
  const Program program = compile(program_of({
      Op{OpKind::send, false, Rank{1}, kIn, {}},
      Op{OpKind::send, false, Rank{2}, kIn, {}},
      Op{OpKind::send, false, Rank{1}, kOut, {}},
  }));
  EXPECT_EQ(program.channels[0].code[1].index, 0u);
  EXPECT_EQ(program.channels[0].code[2].index, 1u);
}

TEST(Program, KeepsAFormWithAMessageAChunkForVectorsThatAreCut) {
  const Program program = compile(program_of({
      Op{OpKind::send, false, Rank{1}, {plan::Buffer::input, 0, 0, 2}, {}},
      Op{OpKind::recv_copy, false, Rank{1}, {}, {plan::Buffer::output, 2, 0, 2}},
  }));
  EXPECT_EQ(program.widest_range, 2u);
  EXPECT_EQ(program.traffic.sends, 1u);
  ASSERT_TRUE(program.by_chunk);
  EXPECT_EQ(program.by_chunk->widest_range, 1u);
  EXPECT_EQ(program.by_chunk->traffic.sends, 2u);
  const std::vector<Instruction>& code = program.by_chunk->channels[0].code;
  ASSERT_EQ(code.size(), 4u);
  EXPECT_EQ(code[0].kind, Instruction::Kind::send);
  EXPECT_EQ(code[1].kind, Instruction::Kind::gather);
  EXPECT_EQ(code[2].chunk.chunk, 1u);
  EXPECT_EQ(code[3].chunk.chunk, 3u);
}

TEST(Program, StartsANewReductionAfterAFinishedOne) {
  const Program program = compile(program_of({
      Op{OpKind::recv_reduce, true, Rank{1}, kIn, kOut},
      Op{OpKind::recv_copy, false, Rank{1}, {}, kOut},
  }));
  EXPECT_EQ(program.channels[0].code.size(), 2u);
}

}  // namespace
}  // namespace gdrx::exec
