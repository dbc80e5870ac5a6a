// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/staging.hpp"

#include <algorithm>
#include <bit>

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

// What a call outgrew stays for smaller ones: to free it would wait for every kernel of the GPU. So
// that it is little, memory grows twofold once it grows.
Result<std::byte*> Staging::room(std::size_t bytes, const void* device) {
  Pinned* best = nullptr;
  bool outgrown = false;
  for (Pinned& pinned : pinned_) {
    if (pinned.taken) continue;
    if (pinned.memory.size() < bytes) {
      outgrown = true;
    } else if (best == nullptr || pinned.memory.size() < best->memory.size()) {
      best = &pinned;
    }
  }
  if (best == nullptr) {
    const std::size_t wanted = outgrown ? std::bit_ceil(bytes) : bytes;
    Pinned fresh{GDRX_TRY(cuda::PinnedBuffer::create(wanted, device))};
    fresh.registration =
        GDRX_TRY(cache_->acquire_new({fresh.memory.data(), wanted}, MemoryKind::host));
    best = &pinned_.emplace_back(std::move(fresh));
  }
  best->taken = true;
  return best->memory.data();
}

void Staging::reset(RegistrationCache& cache) {
  cache_ = &cache;
  results_.clear();
  used_ = false;
  for (Pinned& pinned : pinned_) pinned.taken = false;
}

std::size_t Staging::held() const noexcept {
  std::size_t bytes = 0;
  for (const Pinned& pinned : pinned_) bytes += pinned.memory.size();
  return bytes;
}

Result<std::byte*> Staging::memory(std::size_t bytes, const void* device,
                                   RegistrationCache& cache) {
  reset(cache);
  return room(bytes, device);
}

Result<void> Staging::wait_for_stream(const Call& call) {
  if (call.stream != nullptr) return cuda::synchronize(call.stream);
  for (const void* buffer :
       {static_cast<const void*>(call.input), static_cast<const void*>(call.output)}) {
    if (on_gpu(buffer, call.count)) return cuda::synchronize_default_stream(buffer);
  }
  return {};
}

Result<void> Staging::begin(Call& call, int ranks, Rank self, RegistrationCache& cache) {
  reset(cache);
  const Sides sides = sides_of(call, ranks, self);
  if (on_gpu(call.input, sides.in)) {
    std::byte* host = GDRX_TRY(room(sides.in, call.input));
    GDRX_TRY(cuda::copy_aside_to_host(host, call.input, sides.in));
    call.input = host;
    used_ = true;
  }
  if (on_gpu(call.output, sides.out)) {
    std::byte* host = GDRX_TRY(room(sides.out, call.output));
    results_.push_back({call.output, host, sides.out});
    call.output = host;
    used_ = true;
  }
  return {};
}

Result<void> Staging::end() {
  for (const Copy& copy : results_) {
    GDRX_TRY(cuda::copy_aside_to_device(copy.device, copy.host, copy.bytes));
  }
  results_.clear();
  return {};
}

}  // namespace gdrx
