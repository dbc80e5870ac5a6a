// SPDX-License-Identifier: Apache-2.0
// An op stands on a line of its own, so that two plans can be compared line by line.
#include <fmt/format.h>

#include "collectives/plan/words.hpp"
#include "gdrx/plan_text.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::plan {
namespace {

// Names come from our tables and need no escaping.
std::string json_of(ChunkRef chunk) {
  std::string text =
      fmt::format(R"({{"buffer": "{}", "chunk": {})", name_of(chunk.buffer), chunk.chunk);
  if (chunk.count != 1) text += fmt::format(R"(, "count": {})", chunk.count);
  if (chunk.like != 0) text += fmt::format(R"(, "like": {})", chunk.like);
  return text + "}";
}

std::string json_of(const Op& op) {
  std::string text = fmt::format(R"({{"op": "{}")", name_of(op.kind));
  if (has_peer(op.kind)) text += fmt::format(R"(, "peer": {})", index(op.peer));
  if (has_source(op.kind)) text += R"(, "src": )" + json_of(op.src);
  if (has_target(op.kind)) text += R"(, "dst": )" + json_of(op.dst);
  if (op.finish) text += R"(, "finish": true)";
  return text + "}";
}

std::string json_of(const RankProgram& program) {
  std::string text =
      fmt::format(R"({{"scratch_chunks": {}, "channels": [)", program.scratch_chunks);
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    text += c > 0 ? ", [" : "[";
    for (std::size_t i = 0; i < program.channels[c].size(); ++i) {
      text += (i > 0 ? ",\n      " : "\n      ") + json_of(program.channels[c][i]);
    }
    text += ']';
  }
  return text + "]}";
}

std::string leaves_member(const Spec& spec) {
  if (spec.leaves.empty()) return "";
  return fmt::format("\n  \"leaves\": [{}],", fmt::join(spec.leaves, ", "));
}

}  // namespace

std::string to_json(const Plan& plan) {
  std::string text = fmt::format(
      R"({{
  "gdrx_plan": {},
  "collective": "{}",
  "algorithm": "{}",
  "ranks": {},
  "root": {},{}
  "input_chunks": {},
  "output_chunks": {},
  "channels": {},
  "credits": {},
  "programs": [)",
      kJsonVersion, gdrx::to_string(plan.spec.collective), to_string(plan.spec.algorithm),
      plan.spec.ranks, index(plan.spec.root), leaves_member(plan.spec), plan.shape.input_chunks,
      plan.shape.output_chunks, plan.shape.channels, plan.shape.credits);
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    text += (rank > 0 ? ",\n    " : "\n    ") + json_of(plan.ranks[rank]);
  }
  return text + "\n  ]\n}\n";
}

}  // namespace gdrx::plan
