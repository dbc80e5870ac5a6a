// SPDX-License-Identifier: Apache-2.0
// ncclNetPlugin_v12: NCCL 2.30.3 and later. New: properties with rail and plane, up to 8 ports a
// virtual device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "plugin/abi/properties.hpp"
#include "plugin/abi/types.hpp"

namespace gdrx::nccl {

/// May be null: reg_mr_dma_buf, get_device_mr, irecv_consumed, make_v_device, set_net_attr.
struct NetV12 {
  const char* name;
  NetResult (*init)(void** context, std::uint64_t comm_id, CommConfig* config, LogFunction log,
                    ProfilerFunction profiler);
  NetResult (*devices)(int* count);
  NetResult (*get_properties)(int device, NetPropertiesV12* properties);
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
  NetResult (*make_v_device)(int* device, VDevicePropsV12* props);
  NetResult (*finalize)(void* context);
  NetResult (*set_net_attr)(void* context, NetAttributes* attributes);
};
static_assert(std::is_standard_layout_v<NetV12> && sizeof(NetV12) == 176 &&
              offsetof(NetV12, name) == 0 && offsetof(NetV12, init) == 8 &&
              offsetof(NetV12, devices) == 16 && offsetof(NetV12, get_properties) == 24 &&
              offsetof(NetV12, listen) == 32 && offsetof(NetV12, connect) == 40 &&
              offsetof(NetV12, accept) == 48 && offsetof(NetV12, reg_mr) == 56 &&
              offsetof(NetV12, reg_mr_dma_buf) == 64 && offsetof(NetV12, dereg_mr) == 72 &&
              offsetof(NetV12, isend) == 80 && offsetof(NetV12, irecv) == 88 &&
              offsetof(NetV12, iflush) == 96 && offsetof(NetV12, test) == 104 &&
              offsetof(NetV12, close_send) == 112 && offsetof(NetV12, close_recv) == 120 &&
              offsetof(NetV12, close_listen) == 128 && offsetof(NetV12, get_device_mr) == 136 &&
              offsetof(NetV12, irecv_consumed) == 144 && offsetof(NetV12, make_v_device) == 152 &&
              offsetof(NetV12, finalize) == 160 && offsetof(NetV12, set_net_attr) == 168);

}  // namespace gdrx::nccl
