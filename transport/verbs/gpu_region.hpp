// SPDX-License-Identifier: Apache-2.0
// How GPU memory becomes a region: by dma-buf, by nvidia-peermem, or through a copy on the host.
#pragma once

#include "transport/verbs/core.hpp"

namespace gdrx::verbs {

/// What peers may do to a region of ours, on this rail.
int region_access(const Core& core, const Rail& rail);

/// The first way that every rail takes, or the one that Options ask for. Which and why is logged
/// once a GPU, and kept in Core::gpus.
Result<LocalRegion> reach_gpu_memory(Core& core, std::span<std::byte> memory);
/// By a dma-buf that the caller has exported and keeps.
Result<LocalRegion> reach_exported(Core& core, std::span<std::byte> memory, int fd, Bytes offset);

}  // namespace gdrx::verbs
