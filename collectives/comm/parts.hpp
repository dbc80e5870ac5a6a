// SPDX-License-Identifier: Apache-2.0
// Which parts of its buffers a rank has for each other rank. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/comm/call.hpp"
#include "collectives/exec/exchange.hpp"
#include "gdrx/result.hpp"

namespace gdrx {

/// Of a collective with parts or by messages, whose parts all have the call's count.
exec::Parts equal_parts(const Call& call, Rank self, int ranks);
/// Adds them to a call that has none and may become messages.
void add_parts(Call& call, Rank self, int ranks);
/// A part for each rank, in their order. `begins` null: one behind another. `old`: a list that is
/// needed no more, for its memory.
std::vector<exec::Part> parts_of(const std::size_t* counts, const std::size_t* begins, int ranks,
                                 std::vector<exec::Part> old = {});
/// Whether none begins before the end of those before it.
bool in_order(const std::vector<exec::Part>& parts) noexcept;

/// Of a collective whose parts every rank knows: them, of either buffer.
const std::vector<exec::Part>& parts_alike(const Call& call) noexcept;
/// Elements of this rank's block: what gives the buffer without parts its length.
std::uint64_t own_count(const Call& call, Rank self) noexcept;
/// Of a collective with leaves: how many that rank holds, and all of them together.
std::int32_t leaves_of(const Call& call, Rank rank) noexcept;
std::int32_t all_leaves(const Call& call, int ranks) noexcept;
/// Elements from the buffer's beginning to the end of the last of its parts.
std::uint64_t extent_of(const std::vector<exec::Part>& parts) noexcept;
std::uint64_t elements_of(const std::vector<exec::Part>& parts) noexcept;
/// Of their lengths, for ranks to compare.
std::int32_t digest_of(const std::vector<exec::Part>& parts) noexcept;
std::int32_t digest_of_leaves(const std::vector<std::int32_t>& leaves) noexcept;
/// The parts that have elements, in the order of the buffer, neighbours joined: nothing between
/// them is the call's. Errc::invalid_argument: two parts overlap.
Result<std::vector<exec::Range>> runs_of(const std::vector<exec::Part>& parts, const char* buffer);

}  // namespace gdrx
