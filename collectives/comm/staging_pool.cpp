// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/staging_pool.hpp"

#include <bit>
#include <utility>

namespace gdrx {

// What a call outgrew stays for smaller ones: to free it would wait for every kernel of the GPU. So
// that it is little, memory grows twofold once it grows.
Result<StagingPool::Block*> StagingPool::take(std::size_t bytes, const void* device) {
  Block* best = nullptr;
  bool outgrown = false;
  for (Block& block : blocks_) {
    if (block.taken) continue;
    if (block.memory.size() < bytes) {
      outgrown = true;
    } else if (best == nullptr || block.memory.size() < best->memory.size()) {
      best = &block;
    }
  }
  if (best == nullptr) {
    const std::size_t wanted = outgrown ? std::bit_ceil(bytes) : bytes;
    Block fresh{GDRX_TRY(cuda::PinnedBuffer::create(wanted, device))};
    fresh.registration = GDRX_TRY(cache_.acquire_new({fresh.data(), wanted}, MemoryKind::host));
    best = &blocks_.emplace_back(std::move(fresh));
  }
  best->taken = true;
  return best;
}

std::size_t StagingPool::held() const noexcept {
  std::size_t bytes = 0;
  for (const Block& block : blocks_) bytes += block.memory.size();
  return bytes;
}

}  // namespace gdrx
