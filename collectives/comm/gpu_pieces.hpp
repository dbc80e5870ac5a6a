// SPDX-License-Identifier: Apache-2.0
// The GPUs' part of an allReduce on several hosts: all of it goes into the caller's stream at once,
// with stops where the GPU tells the network and waits for it.
#pragma once

#include <functional>
#include <optional>

#include "collectives/comm/hierarchy.hpp"
#include "collectives/comm/stream_order.hpp"
#include "collectives/gpu/choose.hpp"
#include "collectives/gpu/path.hpp"

namespace gdrx {

struct GpuPieces {
  gpu::Path* path = nullptr;
  gpu::Host host;
  gpu::Work work;  // input, output, bytes, type and op
  gpu::CallRecord record;
  Pieces pieces;
  /// Where this rank's part of a piece goes to the network, and its sum comes from.
  std::function<std::byte*(std::uint64_t piece)> part;
  /// As of StreamOrder. Where the host adds there are no sums, and one level for the network.
  std::uint32_t levels = 1;
  std::vector<std::uint32_t> sums;
  /// What the GPU adds when that is allowed; empty: this sum has no bytes.
  std::function<std::optional<gpu::HostSum>(std::uint64_t piece, std::uint32_t sum)> sum;
};

/// Kernels of a host's ranks wait for each other, so the order is the same on all of them; while
/// the network has a piece the GPUs scatter those after it. Waits for nothing, but CUDA holds up
/// who fills a stream: by a thousand launches, until the stream goes on.
Result<void> enqueue(const GpuPieces& what, void* stream);

}  // namespace gdrx
