// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/staging_pool.hpp"

#include <bit>
#include <utility>

namespace gdrx {

// Another communicator's memory is not this one's network's.
StagingPool::~StagingPool() {
  for (const Block& block : blocks_) {
    if (block.registration) cache_.remove(block.registration.get());
  }
}

StagingPool::Block* StagingPool::find(std::size_t bytes, bool& outgrown) noexcept {
  const std::lock_guard lock(mutex_);
  Block* best = nullptr;
  for (Block& block : blocks_) {
    if (block.taken) continue;
    if (block.memory.size() < bytes) {
      outgrown = true;
    } else if (best == nullptr || block.memory.size() < best->memory.size()) {
      best = &block;
    }
  }
  if (best != nullptr) best->taken = true;
  return best;
}

StagingPool::Lease StagingPool::lend(Block* block) {
  return {block, [this](Block* one) {
            const std::lock_guard lock(mutex_);
            one->taken = false;
          }};
}

// What a call outgrew stays for smaller ones. So that it is little, memory grows twofold once it
// grows.
Result<StagingPool::Lease> StagingPool::take(std::size_t bytes, const void* device) {
  bool outgrown = false;
  if (Block* const block = find(bytes, outgrown)) return lend(block);
  const std::size_t wanted = outgrown ? std::bit_ceil(bytes) : bytes;
  std::list<Block> fresh;
  fresh.push_back({GDRX_TRY(cuda::PinnedBuffer::create(wanted, device)), {}, true});
  Block* const block = &fresh.back();
  {
    const std::lock_guard lock(mutex_);
    blocks_.splice(blocks_.end(), fresh);
  }
  return lend(block);
}

Result<StagingPool::Lease> StagingPool::share(Turn turn, std::size_t bytes, const void* device) {
  std::weak_ptr<Block>& last = turns_[static_cast<std::size_t>(turn)];
  Lease lease = last.lock();
  if (!lease || lease->memory.size() < bytes) last = lease = GDRX_TRY(take(bytes, device));
  return lease;
}

Result<void> StagingPool::enroll(Block& block) {
  if (block.registration) return {};
  block.registration =
      GDRX_TRY(cache_.acquire_new({block.data(), block.memory.size()}, MemoryKind::host));
  return {};
}

std::size_t StagingPool::held() const noexcept {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const Block& block : blocks_) bytes += block.memory.size();
  return bytes;
}

}  // namespace gdrx
