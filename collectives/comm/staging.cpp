// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/staging.hpp"

#include "gdrx/traits.hpp"

namespace gdrx {
namespace {

struct Sides {
  std::uint64_t in = 0;  // bytes read
  std::uint64_t out = 0;
};

Sides sides_of(const Call& call, int ranks, Rank self) {
  const std::uint64_t size = size_of(call.type);
  if (call.collective == Collective::send_recv) {
    return {call.sends ? call.count * size : 0, call.sends ? 0 : call.count * size};
  }
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  const bool root = call.root == self;
  return {plan::elements(traits.input, call.count, ranks, root) * size,
          plan::elements(traits.output, call.count, ranks, root) * size};
}

bool on_gpu(const void* buffer, std::uint64_t bytes) {
  return bytes > 0 && cuda::kind_of(buffer) == MemoryKind::cuda;
}

}  // namespace

Result<std::byte*> Staging::take(StagingPool& pool, std::size_t bytes, const void* device) {
  blocks_.reserve(blocks_.size() + 1);
  blocks_.push_back(GDRX_TRY(pool.take(bytes, device)));
  used_ = true;
  return blocks_.back()->data();
}

void Staging::give_back() noexcept {
  for (StagingPool::Block* block : blocks_) StagingPool::give_back(*block);
  blocks_.clear();
  results_.clear();
}

Result<void> Staging::wait_for_stream(const Call& call) {
  if (call.stream != nullptr) return cuda::synchronize(call.stream);
  for (const void* buffer :
       {static_cast<const void*>(call.input), static_cast<const void*>(call.output)}) {
    if (on_gpu(buffer, call.count)) return cuda::synchronize_default_stream(buffer);
  }
  return {};
}

Result<void> Staging::begin(Call& call, int ranks, Rank self, StagingPool& pool) {
  give_back();
  used_ = false;
  const Sides sides = sides_of(call, ranks, self);
  if (on_gpu(call.input, sides.in)) {
    std::byte* host = GDRX_TRY(take(pool, sides.in, call.input));
    GDRX_TRY(cuda::copy_aside_to_host(host, call.input, sides.in));
    call.input = host;
  }
  if (on_gpu(call.output, sides.out)) {
    std::byte* host = GDRX_TRY(take(pool, sides.out, call.output));
    results_.push_back({call.output, host, sides.out});
    call.output = host;
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
