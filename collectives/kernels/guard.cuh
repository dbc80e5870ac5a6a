// SPDX-License-Identifier: Apache-2.0
// Whether the communicator of a kernel that enters no call is there: a graph may outlive it.
#pragma once

#include "collectives/kernels/device.cuh"

namespace gdrx::gpu {

__device__ __forceinline__ bool is_closed(const Guard& guard) {
  if (guard.control == nullptr) return false;
  return !is_of(static_cast<const volatile Control*>(guard.control)->owner, guard.owner);
}

/// Threads of a block of the kernels that need no peers.
inline constexpr int kBlock = 256;

}  // namespace gdrx::gpu
