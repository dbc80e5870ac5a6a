// SPDX-License-Identifier: Apache-2.0
// ncclNetPlugin_v9: NCCL 2.24 and later. New: sizes become size_t; make_v_device; the optional
// completion of receives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "plugin/abi/properties.hpp"
#include "plugin/abi/types.hpp"

namespace gdrx::nccl {

/// May be null: reg_mr_dma_buf, get_device_mr, irecv_consumed, make_v_device.
struct NetV9 {
  const char* name;
  NetResult (*init)(LogFunction log);
  NetResult (*devices)(int* count);
  NetResult (*get_properties)(int device, NetPropertiesV9* properties);
  NetResult (*listen)(int device, void* handle, void** listen_comm);
  NetResult (*connect)(int device, void* handle, void** send_comm, NetDeviceHandle** device_comm);
  NetResult (*accept)(void* listen_comm, void** recv_comm, NetDeviceHandle** device_comm);
  NetResult (*reg_mr)(void* comm, void* data, std::size_t size, int type, void** mhandle);
  NetResult (*reg_mr_dma_buf)(void* comm, void* data, std::size_t size, int type,
                              std::uint64_t offset, int fd, void** mhandle);
  NetResult (*dereg_mr)(void* comm, void* mhandle);
  NetResult (*isend)(void* send_comm, void* data, std::size_t size, int tag, void* mhandle,
                     void** request);
  NetResult (*irecv)(void* recv_comm, int n, void** data, std::size_t* sizes, int* tags,
                     void** mhandles, void** request);
  NetResult (*iflush)(void* recv_comm, int n, void** data, int* sizes, void** mhandles,
                      void** request);
  NetResult (*test)(void* request, int* done, int* sizes);
  NetResult (*close_send)(void* send_comm);
  NetResult (*close_recv)(void* recv_comm);
  NetResult (*close_listen)(void* listen_comm);
  NetResult (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);
  NetResult (*irecv_consumed)(void* recv_comm, int n, void* request);
  NetResult (*make_v_device)(int* device, VDevicePropsV9* props);
};
static_assert(std::is_standard_layout_v<NetV9> && sizeof(NetV9) == 160 &&
              offsetof(NetV9, name) == 0 && offsetof(NetV9, init) == 8 &&
              offsetof(NetV9, devices) == 16 && offsetof(NetV9, get_properties) == 24 &&
              offsetof(NetV9, listen) == 32 && offsetof(NetV9, connect) == 40 &&
              offsetof(NetV9, accept) == 48 && offsetof(NetV9, reg_mr) == 56 &&
              offsetof(NetV9, reg_mr_dma_buf) == 64 && offsetof(NetV9, dereg_mr) == 72 &&
              offsetof(NetV9, isend) == 80 && offsetof(NetV9, irecv) == 88 &&
              offsetof(NetV9, iflush) == 96 && offsetof(NetV9, test) == 104 &&
              offsetof(NetV9, close_send) == 112 && offsetof(NetV9, close_recv) == 120 &&
              offsetof(NetV9, close_listen) == 128 && offsetof(NetV9, get_device_mr) == 136 &&
              offsetof(NetV9, irecv_consumed) == 144 && offsetof(NetV9, make_v_device) == 152);

}  // namespace gdrx::nccl
