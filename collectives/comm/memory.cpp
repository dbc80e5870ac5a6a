// SPDX-License-Identifier: Apache-2.0
// A communicator's registered memory: the user's, and its own.
#include <fmt/format.h>

#include "collectives/comm/communicator.hpp"

namespace gdrx {

// The driver's lock: the device is used by one thread at a time, and the mesh's may be in it.
Result<RegistrationRef> Communicator::register_memory(std::span<std::byte> memory) {
  if (cuda::kind_of(memory.data()) == MemoryKind::cuda) {
    return fail(
        Errc::unsupported,
        "the GPUs of this communicator do not all reach each other: calls on GPU buffers go "
        "through pinned host memory, which is registered already");
  }
  const std::lock_guard lock(driver_);
  return network_.registrations().acquire(memory, MemoryKind::host);
}

Result<void> Communicator::release_memory(const Registration* registration) {
  const std::lock_guard lock(driver_);
  if (network_.registrations().release(registration)) return {};
  return fail(Errc::invalid_argument, "this is not registered with the communicator (any more)");
}

Result<std::byte*> Communicator::allocate_memory(std::size_t bytes) {
  const std::lock_guard lock(driver_);
  Allocation fresh;
  fresh.pages = GDRX_TRY(Pages::create(bytes));
  fresh.registration =
      GDRX_TRY(network_.registrations().acquire_new(fresh.pages.bytes(), MemoryKind::host));
  std::byte* memory = fresh.pages.data();
  allocations_.emplace(memory, std::move(fresh));
  return memory;
}

Result<void> Communicator::free_memory(const std::byte* memory) {
  const std::lock_guard lock(driver_);
  const auto found = allocations_.find(memory);
  if (found == allocations_.end()) {
    return fail(Errc::invalid_argument,
                "this memory is not from gdrxMemAlloc or gdrxGpuMemAlloc of the communicator");
  }
  take_posted();
  if (!queue_.empty()) {
    return fail(Errc::invalid_argument,
                "memory is not freed while operations are pending: wait for them first");
  }
  network_.registrations().remove(found->second.registration.get());
  allocations_.erase(found);
  return {};
}

MemoryHeld Communicator::memory_held() const {
  const Driving driving(*this);
  MemoryHeld held;
  if (seat_) held.shared = memory_.arena.size();
  held.inbox = network_.inbox_bytes();
  held.scratch = network_.scratch_bytes();
  held.pinned = pinned_->held() + rails_.pinned_bytes() + streams_.pinned_bytes();
  for (const auto& [memory, allocation] : allocations_) {
    held.allocated += allocation.pages.bytes().size();
  }
  held.registered = network_.registrations().bytes();
  if (gpu_) held.gpu = gpu_->memory();
  for (const Window& window : windows_) {
    (window.memory ? held.gpu_allocated : held.gpu_registered) += window.bytes;
  }
  return held;
}

}  // namespace gdrx
