// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/memory.hpp"

#include <mutex>

namespace gdrx::net {
namespace {

Result<std::unique_ptr<PinnedMemory>> pin(Lane& lane, std::span<std::byte> bytes, bool gpu,
                                          const Exported* exported) {
  if (exported != nullptr) {
    return lane.device().pin_dma_buf(bytes, exported->fd, exported->offset);
  }
  return lane.device().pin(bytes, gpu ? MemoryKind::cuda : MemoryKind::host);
}

// With the lock. Where another thread has registered the same meanwhile, what it has is used, and
// `pinned` is left.
Result<RegistrationRef> registration_of(Lane& lane, const Memory& memory, const Exported* exported,
                                        std::unique_ptr<PinnedMemory>& pinned) {
  Device& device = lane.device();
  return lane.memory().acquire(memory.bytes, [&]() -> Result<std::unique_ptr<MemoryRegion>> {
    if (pinned) return device.adopt(std::move(pinned));
    if (exported != nullptr) {
      return device.register_dma_buf(memory.bytes, exported->fd, exported->offset);
    }
    return device.register_memory(memory.bytes, memory.gpu ? MemoryKind::cuda : MemoryKind::host);
  });
}

// The NICs' drivers pin its pages meanwhile, which may take long: without the lock, so that the
// lane's messages go on.
Result<void> register_with(Lane& lane, Comm& comm, Memory& memory, const Exported* exported) {
  std::unique_ptr<PinnedMemory> pinned;  // and ended without the lock
  {
    const std::lock_guard held(lane.lock());
    memory.registration = lane.memory().acquire_known(memory.bytes);
    if (memory.registration) {
      stats::page().registration_hits.add(1);
      memory.handed_over = comm.hand_over(*memory.region());
      return {};
    }
  }
  pinned = GDRX_TRY(pin(lane, memory.bytes, memory.gpu, exported));
  const std::lock_guard held(lane.lock());
  memory.registration = GDRX_TRY(registration_of(lane, memory, exported, pinned));
  stats::page().registrations.add(1);
  memory.handed_over = comm.hand_over(*memory.region());
  return {};
}

}  // namespace

Result<std::unique_ptr<Memory>> register_memory(Comm& comm, std::span<std::byte> bytes, int type,
                                                const Exported* exported) {
  const auto& lane = comm.shared_lane();
  const int needs = type | (exported != nullptr ? nccl::kPtrDmaBuf : 0);
  if ((type != nccl::kPtrHost && type != nccl::kPtrCuda) || (lane->pointers() & needs) != needs) {
    return fail(Errc::invalid_argument, exported != nullptr
                                            ? "this device takes no dma-buf"
                                            : "this device takes host memory: NCCL has to stage");
  }
  auto memory = std::make_unique<Memory>();
  memory->lane = lane;
  memory->comm = comm.index();
  memory->bytes = bytes;
  memory->gpu = type == nccl::kPtrCuda;
  if (bytes.empty()) return memory;
  if (lane->fabric() == "ucx") {
    // Without the lock: the driver may keep this thread waiting for the application.
    if (memory->gpu) memory->handed_over = GDRX_TRY(comm.hand_over(bytes));
    return memory;
  }
  GDRX_TRY(register_with(*lane, comm, *memory, exported));
  return memory;
}

void deregister(std::unique_ptr<Memory> memory) {
  const std::shared_ptr<Lane> lane = memory->lane;  // outlives the lock
  std::unique_ptr<PinnedMemory> pinned;             // ended without the lock, as it was made
  const std::lock_guard held(lane->lock());
  Comm* comm = find_comm_of(*lane, memory->comm);
  if (comm != nullptr) comm->let_go(*memory);
  if (memory->registration) {
    if (comm != nullptr) comm->take_back(*memory->region());
    pinned = lane->release(std::move(memory->registration));
  }
  memory.reset();
}

}  // namespace gdrx::net
