// SPDX-License-Identifier: Apache-2.0
#include "plugin/exports/calls.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>

#include "plugin/core/log.hpp"

namespace gdrx::net {
NetResult start(int abi, nccl::LogFunction log) {
  set_nccl_log(log);
  return guarded("init", [&] { return Plugin::instance().start(abi); });
}

NetResult devices(int* count) {
  *count = static_cast<int>(Plugin::instance().devices().size());
  return NetResult::success;
}

NetResult init_context(int abi, void** context, const nccl::CommConfig* config,
                       nccl::LogFunction log) {
  set_nccl_log(log);
  return guarded("init", [&]() -> Result<void> {
    GDRX_TRY(Plugin::instance().start(abi));
    auto made = GDRX_TRY(Plugin::instance().make_context(config));
    *context = made.release();
    return {};
  });
}

NetResult finalize(void* context) {
  return guarded("finalize", [&]() -> Result<void> {
    const std::unique_ptr<Context> owner(static_cast<Context*>(context));
    return {};
  });
}

NetResult set_net_attr(void*, nccl::NetAttributes*) { return NetResult::success; }

namespace {

Result<void> listen_with(Context& context, int device, void* handle, void** listen_comm) {
  auto listener = GDRX_TRY(Plugin::instance().listen(context, device, handle));
  *listen_comm = listener.release();
  return {};
}

Result<void> connect_with(Context& context, int device, void* handle, void** send_comm,
                          NetDeviceHandle** device_comm) {
  *send_comm = nullptr;
  if (device_comm != nullptr) *device_comm = nullptr;
  auto sender = GDRX_TRY(Plugin::instance().connect(context, device, handle));
  *send_comm = static_cast<Comm*>(sender.release());
  return {};
}

}  // namespace

NetResult listen(int device, void* handle, void** listen_comm) {
  return guarded("listen", [&] {
    return listen_with(Plugin::instance().context_of_thread(), device, handle, listen_comm);
  });
}

NetResult listen_in(void* context, int device, void* handle, void** listen_comm) {
  return guarded("listen", [&] {
    return listen_with(*static_cast<Context*>(context), device, handle, listen_comm);
  });
}

NetResult connect(int device, void* handle, void** send_comm, NetDeviceHandle** device_comm) {
  return guarded("connect", [&] {
    return connect_with(Plugin::instance().context_of_thread(), device, handle, send_comm,
                        device_comm);
  });
}

NetResult connect_in(void* context, int device, void* handle, void** send_comm,
                     NetDeviceHandle** device_comm) {
  return guarded("connect", [&] {
    return connect_with(*static_cast<Context*>(context), device, handle, send_comm, device_comm);
  });
}

NetResult accept(void* listen_comm, void** recv_comm, NetDeviceHandle** device_comm) {
  return guarded("accept", [&]() -> Result<void> {
    *recv_comm = nullptr;
    if (device_comm != nullptr) *device_comm = nullptr;
    auto* listener = static_cast<Listener*>(listen_comm);
    const std::lock_guard turn(listener->lane()->turn());
    auto receiver = GDRX_TRY(listener->accept());
    *recv_comm = static_cast<Comm*>(receiver.release());
    return {};
  });
}

NetResult reg_mr(void* comm, void* data, std::size_t size, int type, void** mhandle) {
  return guarded("regMr", [&]() -> Result<void> {
    *mhandle = nullptr;
    const bool gpu = type == nccl::kPtrCuda && Plugin::instance().takes_gpu_memory();
    if (type != nccl::kPtrHost && !gpu) {
      return fail(Errc::invalid_argument, "this device takes host memory: NCCL has to stage");
    }
    auto* owner = static_cast<Comm*>(comm);
    const auto& lane = owner->shared_lane();
    auto memory = std::make_unique<Memory>();
    memory->lane = lane;
    memory->bytes = {static_cast<std::byte*>(data), size};
    memory->gpu = gpu;
    if (gpu && size > 0) {
      const std::lock_guard turn(lane->turn());
      memory->handed_over = GDRX_TRY(owner->hand_over(memory->bytes));
    }
    if (lane->fabric() != "ucx" && size > 0) {
      const std::lock_guard turn(lane->turn());
      memory->region = GDRX_TRY(lane->device().register_memory(memory->bytes, MemoryKind::host));
      memory->handed_over = GDRX_TRY(owner->hand_over(*memory->region));
    }
    *mhandle = memory.release();
    return {};
  });
}

NetResult reg_mr_dma_buf(void*, void*, std::size_t, int, std::uint64_t, int, void** mhandle) {
  *mhandle = nullptr;
  return guarded("regMrDmaBuf", [&]() -> Result<void> {
    return fail(Errc::unsupported, "this device takes host memory");
  });
}

NetResult dereg_mr(void*, void* mhandle) {
  return guarded("deregMr", [&]() -> Result<void> {
    if (mhandle == nullptr) return {};
    auto* memory = static_cast<Memory*>(mhandle);
    const std::shared_ptr<Lane> lane = memory->lane;  // outlives the turn
    const std::lock_guard turn(lane->turn());
    if (memory->region) lane->forget(*memory->region);
    const std::unique_ptr<Memory> owner(memory);
    return {};
  });
}

NetResult isend(void* send_comm, void* data, std::size_t size, int tag, void* mhandle,
                void** request) {
  return guarded("isend", [&]() -> Result<void> {
    *request = nullptr;
    auto* sender = static_cast<Sender*>(static_cast<Comm*>(send_comm));
    const std::unique_lock turn(sender->lane().turn(), std::try_to_lock);
    if (!turn.owns_lock()) return {};
    *request = GDRX_TRY(sender->isend({static_cast<const std::byte*>(data), size}, tag,
                                      static_cast<const Memory*>(mhandle)));
    return {};
  });
}

NetResult irecv_targets(void* recv_comm, std::span<const Target> targets, void** request) {
  return guarded("irecv", [&]() -> Result<void> {
    *request = nullptr;  // NCCL may have left its sentinel there
    auto* receiver = static_cast<Receiver*>(static_cast<Comm*>(recv_comm));
    const std::unique_lock turn(receiver->lane().turn(), std::try_to_lock);
    if (!turn.owns_lock()) return {};
    *request = GDRX_TRY(receiver->irecv(targets));
    return {};
  });
}

// Host memory: what is received is visible when test() says so.
NetResult iflush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;
  return NetResult::success;
}

NetResult test(void* request, int* done, int* sizes) {
  return guarded("test", [&]() -> Result<void> {
    *done = 0;
    const auto id = decode(request);
    Comm* comm = id ? find_comm(id->comm) : nullptr;
    if (comm == nullptr) return fail(Errc::invalid_argument, "that is no request of ours");
    const std::unique_lock turn(comm->lane().turn(), std::try_to_lock);
    if (!turn.owns_lock()) return {};
    const Answer answer = GDRX_TRY(comm->test(*id));
    if (answer.progress == Progress::pending) return {};
    *done = 1;
    if (sizes != nullptr) std::copy_n(answer.sizes, answer.count, sizes);
    return {};
  });
}

namespace {

NetResult close_comm(const char* name, void* comm) {
  return guarded(name, [&]() -> Result<void> {
    if (comm == nullptr) return {};
    auto* closing = static_cast<Comm*>(comm);
    const std::shared_ptr<Lane> lane = closing->shared_lane();  // outlives the turn
    const std::lock_guard turn(lane->turn());
    const std::unique_ptr<Comm> owner(closing);
    if (closing->has_open()) {
      lane->log().info("{}: closed with requests open: {} (peer {})", name, closing->state(),
                       closing->peer_name());
    }
    return {};
  });
}

}  // namespace

NetResult close_send(void* send_comm) { return close_comm("closeSend", send_comm); }
NetResult close_recv(void* recv_comm) { return close_comm("closeRecv", recv_comm); }

NetResult close_listen(void* listen_comm) {
  return guarded("closeListen", [&]() -> Result<void> {
    if (listen_comm == nullptr) return {};
    auto* listener = static_cast<Listener*>(listen_comm);
    const std::shared_ptr<Lane> lane = listener->lane();
    const std::lock_guard turn(lane->turn());
    const std::unique_ptr<Listener> owner(listener);
    return {};
  });
}

}  // namespace gdrx::net
