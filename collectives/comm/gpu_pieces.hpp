// SPDX-License-Identifier: Apache-2.0
// The GPUs' part of an allReduce on several hosts: all of it goes into the caller's stream at once,
// with stops where the GPU tells the network and waits for it.
#pragma once

#include <functional>
#include <optional>

#include "collectives/comm/hierarchy.hpp"
#include "collectives/gpu/choose.hpp"
#include "collectives/gpu/path.hpp"

namespace gdrx {

/// Pieces in flight, and so slots of the memory between GPUs and network: piece p has p % kAhead.
inline constexpr std::uint64_t kAhead = 3;

struct GpuPieces {
  gpu::Path* path = nullptr;
  gpu::Host host;
  gpu::Work work;  // input, output, bytes, type and op
  gpu::CallRecord record;
  Pieces pieces;
  /// Where this rank's part of a piece goes to the network, and its sum comes from.
  std::function<std::byte*(std::uint64_t piece)> part;
  /// What the GPU adds up when that is allowed, nothing for some pieces; empty: the host adds.
  std::function<std::optional<gpu::HostSum>(std::uint64_t piece)> sum;
};

/// The order is the same on all ranks and does not depend on when the network is done: scatter 0,
/// 1, add 0, scatter 2, add 1, gather 0, scatter 3, ... Each waits for what stands before it in
/// this order alone, on any rank. So all come to an end, though kernels of a host's ranks wait for
/// each other, and while the network has a piece the GPUs scatter those after it. Nothing blocks.
Result<void> enqueue(const GpuPieces& what, void* stream);

}  // namespace gdrx
