// SPDX-License-Identifier: Apache-2.0
// ncclNetPlugin_v11: NCCL 2.28.3 and later. New: contexts, one init() and finalize() a
// communicator; set_net_attr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "plugin/abi/properties.hpp"
#include "plugin/abi/types.hpp"

namespace gdrx::nccl {

/// May be null: reg_mr_dma_buf, get_device_mr, irecv_consumed, make_v_device, set_net_attr.
struct NetV11 {
  const char* name;
  NetResult (*init)(void** context, std::uint64_t comm_id, CommConfig* config, LogFunction log,
                    ProfilerFunction profiler);
  NetResult (*devices)(int* count);
  NetResult (*get_properties)(int device, NetPropertiesV11* properties);
  NetResult (*listen)(void* context, int device, void* handle, void** listen_comm);
  NetResult (*connect)(void* context, int device, void* handle, void** send_comm,
                       NetDeviceHandle** device_comm);
  NetResult (*accept)(void* listen_comm, void** recv_comm, NetDeviceHandle** device_comm);
  NetResult (*reg_mr)(void* comm, void* data, std::size_t size, int type, void** mhandle);
  NetResult (*reg_mr_dma_buf)(void* comm, void* data, std::size_t size, int type,
                              std::uint64_t offset, int fd, void** mhandle);
  NetResult (*dereg_mr)(void* comm, void* mhandle);
  NetResult (*isend)(void* send_comm, void* data, std::size_t size, int tag, void* mhandle,
                     void* profiler_handle, void** request);
  NetResult (*irecv)(void* recv_comm, int n, void** data, std::size_t* sizes, int* tags,
                     void** mhandles, void** profiler_handles, void** request);
  NetResult (*iflush)(void* recv_comm, int n, void** data, int* sizes, void** mhandles,
                      void** request);
  NetResult (*test)(void* request, int* done, int* sizes);
  NetResult (*close_send)(void* send_comm);
  NetResult (*close_recv)(void* recv_comm);
  NetResult (*close_listen)(void* listen_comm);
  NetResult (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);
  NetResult (*irecv_consumed)(void* recv_comm, int n, void* request);
  NetResult (*make_v_device)(int* device, VDevicePropsV11* props);
  NetResult (*finalize)(void* context);
  NetResult (*set_net_attr)(void* context, NetAttributes* attributes);
};
static_assert(std::is_standard_layout_v<NetV11> && sizeof(NetV11) == 176 &&
              offsetof(NetV11, name) == 0 && offsetof(NetV11, init) == 8 &&
              offsetof(NetV11, devices) == 16 && offsetof(NetV11, get_properties) == 24 &&
              offsetof(NetV11, listen) == 32 && offsetof(NetV11, connect) == 40 &&
              offsetof(NetV11, accept) == 48 && offsetof(NetV11, reg_mr) == 56 &&
              offsetof(NetV11, reg_mr_dma_buf) == 64 && offsetof(NetV11, dereg_mr) == 72 &&
              offsetof(NetV11, isend) == 80 && offsetof(NetV11, irecv) == 88 &&
              offsetof(NetV11, iflush) == 96 && offsetof(NetV11, test) == 104 &&
              offsetof(NetV11, close_send) == 112 && offsetof(NetV11, close_recv) == 120 &&
              offsetof(NetV11, close_listen) == 128 && offsetof(NetV11, get_device_mr) == 136 &&
              offsetof(NetV11, irecv_consumed) == 144 && offsetof(NetV11, make_v_device) == 152 &&
              offsetof(NetV11, finalize) == 160 && offsetof(NetV11, set_net_attr) == 168);

}  // namespace gdrx::nccl
