// SPDX-License-Identifier: Apache-2.0
// Calls of GPU memory as the host makes them, and the copies before and behind. Pure.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "collectives/comm/call.hpp"
#include "collectives/gpu/path.hpp"

namespace gdrx {

struct Stage {
  std::vector<Call> calls;  // on host memory
  gpu::Staged work;         // without its record and streams
};

/// Host memory, at least so many bytes of it.
using TakeHostMemory = std::function<Result<std::byte*>(std::uint64_t bytes)>;

/// One collective, or sends and receives. What a rank sends to itself is copied, and no call of the
/// host's. `take` is called once if there is anything to copy to the host.
Result<Stage> stage_of(std::span<const Call* const> calls, int ranks, Rank self,
                       const TakeHostMemory& take);

}  // namespace gdrx
