// SPDX-License-Identifier: Apache-2.0
// What a call reads or writes of a buffer. Pure.
#pragma once

#include <vector>

#include "collectives/comm/call.hpp"
#include "gdrx/result.hpp"

namespace gdrx {

/// In elements. Parts leave gaps that are not the call's.
struct Side {
  std::vector<exec::Range> runs;
  std::uint64_t end() const { return runs.empty() ? 0 : runs.back().begin + runs.back().count; }
};

/// Whether there is anything, of rank `self`.
bool has_side(const Call& call, bool output, int ranks, Rank self) noexcept;
/// On rank `self`. Errc::invalid_argument: parts overlap.
Result<Side> side_of(const Call& call, bool output, int ranks, Rank self);

}  // namespace gdrx
