// SPDX-License-Identifier: Apache-2.0
// The calls that are the same in every version of the ABI, and the parts of those that are not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plugin/abi/net.hpp"
#include "plugin/core/plugin.hpp"
#include "plugin/exports/guard.hpp"

namespace gdrx::net {

using nccl::NetDeviceHandle;
using nccl::NetResult;

inline constexpr char kPluginName[] = "gdrx";

NetResult start(int abi, nccl::LogFunction log);
NetResult devices(int* count);
NetResult accept(void* listen_comm, void** recv_comm, NetDeviceHandle** device_comm);
NetResult reg_mr(void* comm, void* data, std::size_t size, int type, void** mhandle);
NetResult reg_mr_dma_buf(void* comm, void* data, std::size_t size, int type, std::uint64_t offset,
                         int fd, void** mhandle);
NetResult dereg_mr(void* comm, void* mhandle);
NetResult iflush(void* recv_comm, int n, void** data, int* sizes, void** mhandles, void** request);
NetResult test(void* request, int* done, int* sizes);
NetResult close_send(void* send_comm);
NetResult close_recv(void* recv_comm);
NetResult close_listen(void* listen_comm);

// Before v11 the context is the calling thread's.
NetResult listen(int device, void* handle, void** listen_comm);
NetResult connect(int device, const nccl::CommConfig* config, void* handle, void** send_comm,
                  NetDeviceHandle** device_comm);

// v11 and later.
NetResult init_context(int abi, void** context, const nccl::CommConfig* config,
                       nccl::LogFunction log);
NetResult finalize(void* context);
NetResult set_net_attr(void* context, nccl::NetAttributes* attributes);
NetResult listen_in(void* context, int device, void* handle, void** listen_comm);
NetResult connect_in(void* context, int device, void* handle, void** send_comm,
                     NetDeviceHandle** device_comm);

NetResult isend(void* send_comm, void* data, std::size_t size, int tag, void* mhandle,
                void** request);
/// `targets` are n receives whose sizes are already widened.
NetResult irecv_targets(void* recv_comm, std::span<const Target> targets, void** request);

/// NCCL's sizes are int in v8, size_t later.
template <class Size>
NetResult irecv(void* recv_comm, int n, void** data, const Size* sizes, const int* tags,
                void** mhandles, void** request) noexcept {
  if (n < 1 || n > static_cast<int>(kMaxGroup)) return NetResult::invalid_argument;
  std::array<Target, kMaxGroup> targets;
  const auto count = static_cast<std::size_t>(n);
  for (std::size_t i = 0; i < count; ++i) {
    if (sizes[i] < Size{0}) return NetResult::invalid_argument;
    targets[i] = {{static_cast<std::byte*>(data[i]), static_cast<std::size_t>(sizes[i])},
                  tags[i],
                  mhandles == nullptr ? nullptr : static_cast<const Memory*>(mhandles[i])};
  }
  return irecv_targets(recv_comm, std::span(targets).first(count), request);
}

}  // namespace gdrx::net
