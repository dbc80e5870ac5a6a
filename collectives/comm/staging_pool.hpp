// SPDX-License-Identifier: Apache-2.0
// Pinned host memory of a communicator: what GPU buffers are staged through.
#pragma once

#include <cstddef>
#include <list>

#include "gdrx/result.hpp"
#include "transport/memory/cuda_memory.hpp"
#include "transport/memory/registration_cache.hpp"

namespace gdrx {

/// Keeps its memory for later calls. Used by the thread that drives the communicator.
class StagingPool {
 public:
  struct Block {
    cuda::PinnedBuffer memory;
    RegistrationRef registration{};
    bool taken = false;
    std::byte* data() const noexcept { return memory.data(); }
  };
  /// Blocks are registered in `cache`, which outlives this object.
  explicit StagingPool(RegistrationCache& cache) : cache_(cache) {}
  /// At least `bytes`, of the context that `device` belongs to, until give_back(). May allocate.
  Result<Block*> take(std::size_t bytes, const void* device);
  static void give_back(Block& block) noexcept { block.taken = false; }
  /// Bytes: less than twice what was taken at once at most, rounded up to powers of two.
  std::size_t held() const noexcept;

 private:
  RegistrationCache& cache_;
  std::list<Block> blocks_;  // their addresses stay
};

}  // namespace gdrx
