// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/staging.hpp"

#include <algorithm>
#include <vector>

#include "collectives/comm/side.hpp"

namespace gdrx {

Result<std::byte*> Staging::take(StagingPool& pool, std::size_t bytes, const void* device) {
  blocks_.reserve(blocks_.size() + 1);
  blocks_.push_back(GDRX_TRY(pool.take(bytes, device)));
  used_ = true;
  return blocks_.back()->data();
}

bool Staging::has(const std::byte* memory) const noexcept {
  return std::any_of(blocks_.begin(), blocks_.end(),
                     [&](StagingPool::Block* block) { return block->data() == memory; });
}

void Staging::give_back() noexcept {
  for (StagingPool::Block* block : blocks_) StagingPool::give_back(*block);
  blocks_.clear();
  results_.clear();
}

Result<void> Staging::look(Call& call) {
  if (cuda::is_loaded()) {
    call.gpu_input = cuda::kind_of(call.input) == MemoryKind::cuda;
    call.gpu_output = cuda::kind_of(call.output) == MemoryKind::cuda;
  }
  if (call.stream != nullptr) return cuda::synchronize(call.stream);
  if (call.count == 0 && !call.parts) return {};
  if (call.gpu_input) return cuda::synchronize_default_stream(call.input);
  if (call.gpu_output) return cuda::synchronize_default_stream(call.output);
  return {};
}

Result<void> Staging::begin(Call& call, int ranks, Rank self, StagingPool& pool) {
  give_back();
  used_ = false;
  const std::size_t size = size_of(call.type);
  if (call.gpu_input) {
    const Side side = GDRX_TRY(side_of(call, false, ranks, self));
    if (side.end() > 0) {
      std::byte* const host = GDRX_TRY(take(pool, side.end() * size, call.input));
      for (const exec::Range& run : side.runs) {
        GDRX_TRY(cuda::copy_aside_to_host(host + run.begin * size, call.input + run.begin * size,
                                          run.count * size));
      }
      call.input = host;
    }
  }
  if (call.gpu_output) {
    const Side side = GDRX_TRY(side_of(call, true, ranks, self));
    if (side.end() > 0) {
      std::byte* const host = GDRX_TRY(take(pool, side.end() * size, call.output));
      for (const exec::Range& run : side.runs) {
        results_.push_back(
            {call.output + run.begin * size, host + run.begin * size, run.count * size});
      }
      call.output = host;
    }
  }
  return {};
}

Result<void> Staging::end() {
  for (const Copy& copy : results_) {
    GDRX_TRY(cuda::copy_aside_to_device(copy.device, copy.host, copy.bytes));
  }
  give_back();
  return {};
}

}  // namespace gdrx
