// SPDX-License-Identifier: Apache-2.0
// Plans for people and other programs: text, JSON, Graphviz. Pure.
#pragma once

#include <string>
#include <string_view>

#include "gdrx/plan.hpp"

namespace gdrx::plan {

/// "allReduce" and the like, as to_string(Collective) says it.
std::optional<Collective> parse_collective(std::string_view name) noexcept;

/// "send out[3] to 1", "recv_reduce out[2] = in[2] + from 0, finish"; a range is out[4..7].
std::string to_text(const Op& op);
/// One line an op.
std::string to_text(const RankProgram& program, Rank rank);
std::string to_text(const Plan& plan);

/// Graphviz: a cluster a rank, an op a node, dashed edges for messages.
std::string to_dot(const Plan& plan);

std::string to_json(const Plan& plan);

/// What from_json takes at most: a file from elsewhere must not take the machine's memory or hour.
struct JsonLimits {
  std::size_t bytes = 64u << 20;
  std::int32_t ranks = 1024;
  std::size_t ops = 1u << 18;         // all ranks: a ring of 256
  std::uint32_t scratch_chunks = 64;  // a rank; ours have two at most, but for leaves
};
/// Ops that a channel of a plan from JSON may have: the longest of ours has 4 a rank,
/// and with leaves more for each.
inline constexpr std::size_t kJsonOpsPerRank = 16;

/// The plan that `text` holds, verified. Unknown, missing and doubled keys, wrong types and numbers
/// out of range are Errc::invalid_argument that says where, in one line.
Result<Plan> from_json(std::string_view text, const JsonLimits& limits = {});

}  // namespace gdrx::plan
