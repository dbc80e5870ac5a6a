// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "collectives/plan/words.hpp"
#include "gdrx/plan_text.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::plan {
namespace {

std::string name_of(ChunkRef chunk) {
  constexpr std::array<std::string_view, 3> kShort{"in", "out", "tmp"};
  const std::string_view buffer = kShort.at(static_cast<std::size_t>(chunk.buffer));
  if (chunk.count != 1) {
    return fmt::format("{}[{}..{}]", buffer, chunk.chunk,
                       std::uint64_t{chunk.chunk} + chunk.count - 1);
  }
  if (chunk.buffer == Buffer::scratch) {
    return fmt::format("{}[{}]~{}", buffer, chunk.chunk, chunk.like);
  }
  return fmt::format("{}[{}]", buffer, chunk.chunk);
}

std::string words_of(const Op& op) {
  switch (op.kind) {
    case OpKind::send:
      return fmt::format("send {} to {}", name_of(op.src), index(op.peer));
    case OpKind::recv_copy:
      return fmt::format("recv_copy {} = from {}", name_of(op.dst), index(op.peer));
    case OpKind::recv_reduce:
      return fmt::format("recv_reduce {} = {} + from {}", name_of(op.dst), name_of(op.src),
                         index(op.peer));
    case OpKind::copy:
      return fmt::format("copy {} = {}", name_of(op.dst), name_of(op.src));
    case OpKind::reduce:
      return fmt::format("reduce {0} = {0} + {1}", name_of(op.dst), name_of(op.src));
    case OpKind::wait:
      return fmt::format("wait {}", name_of(op.src));
  }
  return "?";
}

}  // namespace

std::optional<Collective> parse_collective(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kCollectiveCount; ++i) {
    if (gdrx::to_string(static_cast<Collective>(i)) == name) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

std::string to_text(const Op& op) { return words_of(op) + (op.finish ? ", finish" : ""); }

std::string to_text(const RankProgram& program, Rank rank) {
  std::string text;
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    text += fmt::format("rank {} channel {}", index(rank), c);
    if (program.scratch_chunks > 0) {
      text += fmt::format(" ({} scratch chunk{})", program.scratch_chunks,
                          program.scratch_chunks == 1 ? "" : "s");
    }
    text += '\n';
    for (std::size_t i = 0; i < program.channels[c].size(); ++i) {
      text += fmt::format("{:>6} {}\n", i, to_text(program.channels[c][i]));
    }
  }
  return text;
}

std::string to_text(const Plan& plan) {
  std::string text = fmt::format(
      "{} {}, {} ranks, root {}: {} chunk(s) in, {} out, {} channel(s), {} credit(s)\n"
      "(~c: a scratch chunk as long as chunk c; finish: the reduction is complete)\n",
      gdrx::to_string(plan.spec.collective), to_string(plan.spec.algorithm), plan.spec.ranks,
      index(plan.spec.root), plan.shape.input_chunks, plan.shape.output_chunks, plan.shape.channels,
      plan.shape.credits);
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    text += to_text(plan.ranks[rank], Rank{static_cast<std::int32_t>(rank)});
  }
  return text;
}

}  // namespace gdrx::plan
