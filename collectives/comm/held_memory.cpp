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
  const std::lock_guard lock(progress_lock_.mutex);
  return network_.registrations().acquire(memory, MemoryKind::host);
}

Result<void> Communicator::release_memory(const Registration* registration) {
  const std::lock_guard lock(progress_lock_.mutex);
  if (network_.registrations().release(registration)) return {};
  return fail(Errc::invalid_argument, "this is not registered with the communicator (any more)");
}

Result<std::byte*> Communicator::allocate_memory(std::size_t bytes) {
  const std::lock_guard lock(progress_lock_.mutex);
  return network_.allocate(bytes);
}

Result<void> Communicator::free_memory(const std::byte* memory) {
  const std::lock_guard lock(progress_lock_.mutex);
  if (!network_.has_allocated(memory)) {
    return fail(Errc::invalid_argument,
                "this memory is not from gdrxMemAlloc or gdrxGpuMemAlloc of the communicator");
  }
  take_posted();
  if (!queue_.empty()) {
    return fail(Errc::invalid_argument,
                "memory is not freed while operations are pending: wait for them first");
  }
  network_.free(memory);
  return {};
}

MemoryHeld Communicator::memory_held() const {
  const Driving driving(*this);
  MemoryHeld held;
  if (memory_.seat) held.shared = memory_.arena.size();
  held.receive_ring = network_.receive_ring_bytes();
  held.scratch = network_.scratch_bytes();
  held.pinned = network_.pinned().held() + gpu_.rails.pinned_bytes() + streams_.pinned_bytes();
  held.allocated = network_.allocated_bytes();
  held.registered = network_.registrations().bytes();
  if (gpu_.path) held.gpu = gpu_.path->memory();
  for (const Window& window : gpu_.windows) {
    (window.memory ? held.gpu_allocated : held.gpu_registered) += window.bytes;
  }
  return held;
}

}  // namespace gdrx
