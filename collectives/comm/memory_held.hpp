// SPDX-License-Identifier: Apache-2.0
// The memory that a communicator holds: gdrxMemoryInfo_t.
#pragma once

#include <cstdint>

#include "gdrx/transport.hpp"
#include "transport/memory/pages.hpp"
#include "transport/memory/registration_cache.hpp"

namespace gdrx {

/// Bytes, of this rank.
struct MemoryHeld {
  std::uint64_t shared = 0;          // the arena, which all ranks of the host map
  std::uint64_t receive_ring = 0;    // room for messages of all peers
  std::uint64_t scratch = 0;         // in which calls work
  std::uint64_t pinned = 0;          // through which GPU buffers go
  std::uint64_t allocated = 0;       // of allocate_memory()
  std::uint64_t registered = 0;      // host memory, the user's and the above
  std::uint64_t gpu = 0;             // the GPU's arena
  std::uint64_t gpu_allocated = 0;   // of allocate_gpu_memory()
  std::uint64_t gpu_registered = 0;  // the user's
};

/// Of allocate_memory().
struct Allocation {
  Pages pages;
  RegistrationRef registration;  // or null
};

}  // namespace gdrx
