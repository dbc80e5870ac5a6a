// SPDX-License-Identifier: Apache-2.0
#include "plugin/exports/net_calls.hpp"

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
  *count = static_cast<int>(Plugin::instance().devices());
  return NetResult::success;
}

NetResult init_context(int abi, void** context, const nccl::CommConfig* config,
                       nccl::LogFunction log) {
  set_nccl_log(log);
  return guarded("init", [&]() -> Result<void> {
    GDRX_TRY(Plugin::instance().start(abi));
    *context = Plugin::instance().make_context(config).release();
    return {};
  });
}

NetResult finalize(void* context) {
  return guarded("finalize", [&]() -> Result<void> {
    const std::unique_ptr<Context> owner(static_cast<Context*>(context));
    return {};
  });
}

NetResult set_net_attr(void* context, nccl::NetAttributes* attributes) {
  if (context != nullptr && attributes != nullptr) {
    static_cast<Context*>(context)->expect(*attributes);
  }
  return NetResult::success;
}

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

NetResult connect(int device, const nccl::CommConfig* config, void* handle, void** send_comm,
                  NetDeviceHandle** device_comm) {
  return guarded("connect", [&] {
    return connect_with(Plugin::instance().context_of_thread(config), device, handle, send_comm,
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
    const std::lock_guard held(listener->device_context()->lock());
    auto receiver = GDRX_TRY(listener->accept());
    *recv_comm = static_cast<Comm*>(receiver.release());
    return {};
  });
}

NetResult reg_mr(void* comm, void* data, std::size_t size, int type, void** mhandle) {
  return guarded("regMr", [&]() -> Result<void> {
    *mhandle = nullptr;
    auto made = GDRX_TRY(register_memory(*static_cast<Comm*>(comm),
                                         {static_cast<std::byte*>(data), size}, type, nullptr));
    *mhandle = made.release();
    return {};
  });
}

NetResult reg_mr_dma_buf(void* comm, void* data, std::size_t size, int type, std::uint64_t offset,
                         int fd, void** mhandle) {
  return guarded("regMrDmaBuf", [&]() -> Result<void> {
    *mhandle = nullptr;
    const Exported exported{fd, offset};
    auto made = GDRX_TRY(register_memory(*static_cast<Comm*>(comm),
                                         {static_cast<std::byte*>(data), size}, type, &exported));
    *mhandle = made.release();
    return {};
  });
}

NetResult dereg_mr(void*, void* mhandle) {
  return guarded("deregMr", [&]() -> Result<void> {
    if (mhandle != nullptr) deregister(std::unique_ptr<Memory>(static_cast<Memory*>(mhandle)));
    return {};
  });
}

NetResult isend(void* send_comm, void* data, std::size_t size, int tag, void* mhandle,
                void** request) {
  return guarded("isend", [&]() -> Result<void> {
    *request = nullptr;
    auto* sender = static_cast<Sender*>(static_cast<Comm*>(send_comm));
    const std::unique_lock held(sender->device_context().lock(), std::try_to_lock);
    if (!held.owns_lock()) return {};
    *request = GDRX_TRY(sender->isend({static_cast<const std::byte*>(data), size}, tag,
                                      static_cast<const Memory*>(mhandle)));
    return {};
  });
}

NetResult irecv_targets(void* recv_comm, std::span<const Target> targets, void** request) {
  return guarded("irecv", [&]() -> Result<void> {
    *request = nullptr;  // NCCL may have left its sentinel there
    auto* receiver = static_cast<Receiver*>(static_cast<Comm*>(recv_comm));
    const std::unique_lock held(receiver->device_context().lock(), std::try_to_lock);
    if (!held.owns_lock()) return {};
    *request = GDRX_TRY(receiver->irecv(targets));
    return {};
  });
}

NetResult iflush(void* recv_comm, int n, void**, int* sizes, void** mhandles, void** request) {
  return guarded("iflush", [&]() -> Result<void> {
    *request = nullptr;  // nothing to do, unless it says otherwise
    const Memory* last = nullptr;
    for (int i = 0; i < n; ++i) {
      if (sizes[i] > 0 && mhandles[i] != nullptr) last = static_cast<const Memory*>(mhandles[i]);
    }
    if (last == nullptr || !last->gpu || last->region() == nullptr) return {};
    auto* receiver = static_cast<Receiver*>(static_cast<Comm*>(recv_comm));
    // There is no "later" for a flush, so that this waits, for a registration at most.
    const std::lock_guard held(receiver->device_context().lock());
    *request = GDRX_TRY(receiver->flush(*last->region()));
    return {};
  });
}

NetResult test(void* request, int* done, int* sizes) {
  return guarded("test", [&]() -> Result<void> {
    *done = 0;
    const auto id = decode(request);
    Comm* comm = id ? find_comm(id->comm) : nullptr;
    if (comm == nullptr) return fail(Errc::invalid_argument, "that is no request of ours");
    const std::unique_lock held(comm->device_context().lock(), std::try_to_lock);
    if (!held.owns_lock()) return {};
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
    const auto device_context = closing->shared_device_context();  // outlives the lock
    const std::lock_guard held(device_context->lock());
    const std::unique_ptr<Comm> owner(closing);
    device_context->account();
    if (closing->has_open()) {
      device_context->log().info("{}: closed with requests open", name);
      closing->dump();
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
    const std::shared_ptr<DeviceContext> device_context = listener->device_context();
    const std::lock_guard held(device_context->lock());
    const std::unique_ptr<Listener> owner(listener);
    return {};
  });
}

}  // namespace gdrx::net
