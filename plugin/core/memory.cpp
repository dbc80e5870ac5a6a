// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/memory.hpp"

#include <mutex>

namespace gdrx::net {
namespace {

Result<std::unique_ptr<PinnedMemory>> pin(DeviceContext& device_context, std::span<std::byte> bytes,
                                          bool gpu, const Exported* exported) {
  if (exported != nullptr) {
    return device_context.device().pin_dma_buf(bytes, exported->fd, exported->offset);
  }
  return device_context.device().pin(bytes, gpu ? MemoryKind::cuda : MemoryKind::host);
}

// With the lock. Where another thread has registered the same meanwhile, what it has is used, and
// `pinned` is left.
Result<RegistrationRef> registration_of(DeviceContext& device_context, const Memory& memory,
                                        const Exported* exported,
                                        std::unique_ptr<PinnedMemory>& pinned) {
  Device& device = device_context.device();
  return device_context.memory().acquire(
      memory.bytes, [&]() -> Result<std::unique_ptr<MemoryRegion>> {
        if (pinned) return device.adopt(std::move(pinned));
        if (exported != nullptr) {
          return device.register_dma_buf(memory.bytes, exported->fd, exported->offset);
        }
        return device.register_memory(memory.bytes,
                                      memory.gpu ? MemoryKind::cuda : MemoryKind::host);
      });
}

// The NICs' drivers pin its pages meanwhile, which may take long: without the lock, so that the
// device context's messages go on.
Result<void> register_with(DeviceContext& device_context, Comm& comm, Memory& memory,
                           const Exported* exported) {
  std::unique_ptr<PinnedMemory> pinned;  // and ended without the lock
  {
    const std::lock_guard held(device_context.lock());
    memory.registration = device_context.memory().acquire_known(memory.bytes);
    if (memory.registration) {
      stats::page().registration_hits.add(1);
      memory.handed_over = comm.hand_over(*memory.region());
      return {};
    }
  }
  pinned = GDRX_TRY(pin(device_context, memory.bytes, memory.gpu, exported));
  const std::lock_guard held(device_context.lock());
  memory.registration = GDRX_TRY(registration_of(device_context, memory, exported, pinned));
  stats::page().registrations.add(1);
  memory.handed_over = comm.hand_over(*memory.region());
  return {};
}

}  // namespace

Result<std::unique_ptr<Memory>> register_memory(Comm& comm, std::span<std::byte> bytes, int type,
                                                const Exported* exported) {
  const auto& device_context = comm.shared_device_context();
  const int needs = type | (exported != nullptr ? nccl::kPtrDmaBuf : 0);
  if ((type != nccl::kPtrHost && type != nccl::kPtrCuda) ||
      (device_context->pointers() & needs) != needs) {
    return fail(Errc::invalid_argument, exported != nullptr
                                            ? "this device takes no dma-buf"
                                            : "this device takes host memory: NCCL has to stage");
  }
  auto memory = std::make_unique<Memory>();
  memory->device_context = device_context;
  memory->comm = comm.index();
  memory->bytes = bytes;
  memory->gpu = type == nccl::kPtrCuda;
  if (bytes.empty()) return memory;
  if (device_context->fabric() == "ucx") {
    // Without the lock: the driver may keep this thread waiting for the application.
    if (memory->gpu) memory->handed_over = GDRX_TRY(comm.hand_over(bytes));
    return memory;
  }
  GDRX_TRY(register_with(*device_context, comm, *memory, exported));
  return memory;
}

void deregister(std::unique_ptr<Memory> memory) {
  const auto device_context = memory->device_context;  // outlives the lock
  std::unique_ptr<PinnedMemory> pinned;                // ended without the lock, as it was made
  const std::lock_guard held(device_context->lock());
  Comm* comm = find_comm_of(*device_context, memory->comm);
  if (comm != nullptr) comm->let_go(*memory);
  if (memory->registration) {
    if (comm != nullptr) comm->take_back(*memory->region());
    pinned = device_context->release(std::move(memory->registration));
  }
  memory.reset();
}

}  // namespace gdrx::net
