// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/memory.hpp"

#include <mutex>

namespace gdrx::net {
namespace {

Result<RegistrationRef> registration_of(Lane& lane, std::span<std::byte> bytes, bool gpu,
                                        const Exported* exported) {
  if (exported == nullptr) {
    return lane.memory().acquire(bytes, gpu ? MemoryKind::cuda : MemoryKind::host);
  }
  return lane.memory().acquire(
      bytes, [&] { return lane.device().register_dma_buf(bytes, exported->fd, exported->offset); });
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
    // Without the turn: the driver may keep this thread waiting for the application.
    if (memory->gpu) memory->handed_over = GDRX_TRY(comm.hand_over(bytes));
    return memory;
  }
  const std::lock_guard turn(lane->turn());
  const std::uint64_t hits = lane->memory().counters().shared;
  memory->registration = GDRX_TRY(registration_of(*lane, bytes, memory->gpu, exported));
  const bool hit = lane->memory().counters().shared > hits;
  (hit ? stats::page().registration_hits : stats::page().registrations).add(1);
  memory->handed_over = comm.hand_over(*memory->region());
  return memory;
}

void deregister(std::unique_ptr<Memory> memory) {
  const std::shared_ptr<Lane> lane = memory->lane;  // outlives the turn
  const std::lock_guard turn(lane->turn());
  Comm* comm = find_comm_of(*lane, memory->comm);
  if (comm != nullptr) comm->let_go(*memory);
  if (memory->registration) {
    if (comm != nullptr) comm->take_back(*memory->region());
    lane->release(memory->registration);
  }
  memory.reset();
}

}  // namespace gdrx::net
