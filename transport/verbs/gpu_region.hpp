// SPDX-License-Identifier: Apache-2.0
// How GPU memory becomes a region: by dma-buf, by nvidia-peermem, or through a copy on the host.
#pragma once

#include <string>

#include "transport/verbs/core.hpp"

namespace gdrx::verbs {

/// What peers may do to a region of ours, on this rail.
int region_access(const Core& core, const Rail& rail);

struct Reached {
  LocalRegion region;
  std::string line;  // which way and why, for people: Core::tell_of_gpu()
};
/// The first way that every rail takes, or the one that Options ask for.
Result<Reached> reach_gpu_memory(const Core& core, std::span<std::byte> memory);
/// By a dma-buf that the caller has exported and keeps.
Result<Reached> reach_exported(const Core& core, std::span<std::byte> memory, int fd, Bytes offset);

}  // namespace gdrx::verbs
