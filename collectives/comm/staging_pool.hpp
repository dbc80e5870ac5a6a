// SPDX-License-Identifier: Apache-2.0
// Pinned host memory of a communicator: what GPU buffers are staged through.
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>

#include "gdrx/result.hpp"
#include "transport/memory/cuda_memory.hpp"
#include "transport/memory/registration_cache.hpp"

namespace gdrx {

/// Keeps its memory for later calls. It outlives what is taken from it.
class StagingPool {
 public:
  struct Block {
    cuda::PinnedBuffer memory;
    RegistrationRef registration{};
    bool taken = false;
    std::byte* data() const noexcept { return memory.data(); }
  };
  /// Given back with the last owner.
  using Lease = std::shared_ptr<Block>;
  /// Of calls that run one after another.
  enum class Turn : std::uint8_t { input, output };

  /// Blocks are registered in `cache`, which outlives this object.
  explicit StagingPool(RegistrationCache& cache) : cache_(cache) {}
  ~StagingPool();
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;
  /// At least `bytes`, of the context that `device` belongs to. Any thread but that which drives:
  /// CUDA may let it wait for a stream that waits for who drives. So no lock of a caller's is held.
  Result<Lease> take(std::size_t bytes, const void* device);
  /// The same, which calls of one turn share.
  Result<Lease> share(Turn turn, std::size_t bytes, const void* device);
  /// By who drives, before the network has it.
  Result<void> enroll(Block& block);
  /// Bytes: less than twice what was taken at once at most, rounded up to powers of two.
  std::size_t held() const noexcept;

 private:
  Block* find(std::size_t bytes, bool& outgrown) noexcept;
  Lease lend(Block* block);

  RegistrationCache& cache_;
  mutable std::mutex mutex_;
  std::list<Block> blocks_;  // their addresses stay
  std::array<std::weak_ptr<Block>, 2> turns_;
};

}  // namespace gdrx
