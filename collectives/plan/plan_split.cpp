// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "collectives/plan/words.hpp"

namespace gdrx::plan {
namespace {

std::uint32_t chunks_of(const Op& op) { return has_target(op.kind) ? op.dst.count : op.src.count; }

// The i-th chunk of a range; an operand that the op has not stays as it is.
Op part(const Op& op, std::uint32_t i) {
  Op one = op;
  if (has_source(op.kind)) one.src.chunk += i;
  if (has_target(op.kind)) one.dst.chunk += i;
  one.src.count = one.dst.count = 1;
  return one;
}

// Not an exchange: giving a vector away and getting it back, when nothing comes before all has
// gone.
bool exchange(const Op& a, const Op& b) {
  const bool receives = b.kind == OpKind::recv_copy || b.kind == OpKind::recv_reduce;
  const bool disjoint =
      a.src.chunk + a.src.count <= b.dst.chunk || b.dst.chunk + b.dst.count <= a.src.chunk;
  return a.kind == OpKind::send && receives && a.peer == b.peer && chunks_of(a) == chunks_of(b) &&
         disjoint;
}

Channel split(const Channel& channel) {
  Channel out;
  for (std::size_t k = 0; k < channel.size(); ++k) {
    const bool pair = k + 1 < channel.size() && exchange(channel[k], channel[k + 1]);
    for (std::uint32_t i = 0; i < chunks_of(channel[k]); ++i) {
      out.push_back(part(channel[k], i));
      if (pair) out.push_back(part(channel[k + 1], i));
    }
    if (pair) ++k;
  }
  return out;
}

}  // namespace

RankProgram split_ranges(const RankProgram& program) {
  RankProgram out;
  out.scratch_chunks = program.scratch_chunks;
  for (const Channel& channel : program.channels) out.channels.push_back(split(channel));
  return out;
}

}  // namespace gdrx::plan
