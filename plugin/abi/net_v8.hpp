// SPDX-License-Identifier: Apache-2.0
// ncclNetPlugin_v8: NCCL 2.20 and later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "plugin/abi/properties.hpp"
#include "plugin/abi/types.hpp"

namespace gdrx::nccl {

/// May be null: reg_mr_dma_buf, get_device_mr, irecv_consumed.
struct NetV8 {
  const char* name;
  NetResult (*init)(LogFunction log);
  NetResult (*devices)(int* count);
  NetResult (*get_properties)(int device, NetPropertiesV8* properties);
  NetResult (*listen)(int device, void* handle, void** listen_comm);
  NetResult (*connect)(int device, void* handle, void** send_comm, NetDeviceHandle** device_comm);
  NetResult (*accept)(void* listen_comm, void** recv_comm, NetDeviceHandle** device_comm);
  NetResult (*reg_mr)(void* comm, void* data, std::size_t size, int type, void** mhandle);
  NetResult (*reg_mr_dma_buf)(void* comm, void* data, std::size_t size, int type,
                              std::uint64_t offset, int fd, void** mhandle);
  NetResult (*dereg_mr)(void* comm, void* mhandle);
  NetResult (*isend)(void* send_comm, void* data, int size, int tag, void* mhandle, void** request);
  NetResult (*irecv)(void* recv_comm, int n, void** data, int* sizes, int* tags, void** mhandles,
                     void** request);
  NetResult (*iflush)(void* recv_comm, int n, void** data, int* sizes, void** mhandles,
                      void** request);
  NetResult (*test)(void* request, int* done, int* sizes);
  NetResult (*close_send)(void* send_comm);
  NetResult (*close_recv)(void* recv_comm);
  NetResult (*close_listen)(void* listen_comm);
  NetResult (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);
  NetResult (*irecv_consumed)(void* recv_comm, int n, void* request);
};
static_assert(std::is_standard_layout_v<NetV8> && sizeof(NetV8) == 152 &&
              offsetof(NetV8, name) == 0 && offsetof(NetV8, init) == 8 &&
              offsetof(NetV8, devices) == 16 && offsetof(NetV8, get_properties) == 24 &&
              offsetof(NetV8, listen) == 32 && offsetof(NetV8, connect) == 40 &&
              offsetof(NetV8, accept) == 48 && offsetof(NetV8, reg_mr) == 56 &&
              offsetof(NetV8, reg_mr_dma_buf) == 64 && offsetof(NetV8, dereg_mr) == 72 &&
              offsetof(NetV8, isend) == 80 && offsetof(NetV8, irecv) == 88 &&
              offsetof(NetV8, iflush) == 96 && offsetof(NetV8, test) == 104 &&
              offsetof(NetV8, close_send) == 112 && offsetof(NetV8, close_recv) == 120 &&
              offsetof(NetV8, close_listen) == 128 && offsetof(NetV8, get_device_mr) == 136 &&
              offsetof(NetV8, irecv_consumed) == 144);

}  // namespace gdrx::nccl
