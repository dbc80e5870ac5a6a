// SPDX-License-Identifier: Apache-2.0
// The symbols that NCCL looks for. v12 is native; the others differ by arguments only.
#include "plugin/exports/properties.hpp"

#define GDRX_EXPORT extern "C" __attribute__((visibility("default")))

namespace gdrx::net {
namespace {

using nccl::CommConfig;
using nccl::LogFunction;
using nccl::ProfilerFunction;

template <int kAbi>
NetResult init_old(LogFunction log) {
  return start(kAbi, log);
}
NetResult init_v10(LogFunction log, ProfilerFunction) { return start(10, log); }
template <int kAbi>
NetResult init_new(void** context, std::uint64_t, CommConfig* config, LogFunction log,
                   ProfilerFunction) {
  return init_context(kAbi, context, config, log);
}

NetResult connect_old(int device, void* handle, void** send_comm, NetDeviceHandle** device_comm) {
  return connect(device, nullptr, handle, send_comm, device_comm);
}
NetResult connect_v10(int device, CommConfig* config, void* handle, void** send_comm,
                      NetDeviceHandle** device_comm) {
  return connect(device, config, handle, send_comm, device_comm);
}

NetResult isend_v8(void* comm, void* data, int size, int tag, void* mhandle, void** request) {
  if (size < 0) return NetResult::invalid_argument;
  return isend(comm, data, static_cast<std::size_t>(size), tag, mhandle, request);
}
NetResult isend_v10(void* comm, void* data, std::size_t size, int tag, void* mhandle, void*,
                    void** request) {
  return isend(comm, data, size, tag, mhandle, request);
}

template <class Size>
NetResult irecv_old(void* comm, int n, void** data, Size* sizes, int* tags, void** mhandles,
                    void** request) {
  return irecv(comm, n, data, sizes, tags, mhandles, request);
}
NetResult irecv_v10(void* comm, int n, void** data, std::size_t* sizes, int* tags, void** mhandles,
                    void**, void** request) {
  return irecv(comm, n, data, sizes, tags, mhandles, request);
}

}  // namespace
}  // namespace gdrx::net

namespace net = gdrx::net;
namespace nccl = gdrx::nccl;

GDRX_EXPORT nccl::NetV8 ncclNetPlugin_v8;
GDRX_EXPORT nccl::NetV9 ncclNetPlugin_v9;
GDRX_EXPORT nccl::NetV10 ncclNetPlugin_v10;
GDRX_EXPORT nccl::NetV11 ncclNetPlugin_v11;
GDRX_EXPORT nccl::NetV12 ncclNetPlugin_v12;

nccl::NetV8 ncclNetPlugin_v8{net::kPluginName,
                             net::init_old<8>,
                             net::devices,
                             net::get_properties<nccl::NetPropertiesV8>,
                             net::listen,
                             net::connect_old,
                             net::accept,
                             net::reg_mr,
                             net::reg_mr_dma_buf,
                             net::dereg_mr,
                             net::isend_v8,
                             net::irecv_old<int>,
                             net::iflush,
                             net::test,
                             net::close_send,
                             net::close_recv,
                             net::close_listen,
                             nullptr,
                             nullptr};

nccl::NetV9 ncclNetPlugin_v9{net::kPluginName,
                             net::init_old<9>,
                             net::devices,
                             net::get_properties<nccl::NetPropertiesV9>,
                             net::listen,
                             net::connect_old,
                             net::accept,
                             net::reg_mr,
                             net::reg_mr_dma_buf,
                             net::dereg_mr,
                             net::isend,
                             net::irecv_old<std::size_t>,
                             net::iflush,
                             net::test,
                             net::close_send,
                             net::close_recv,
                             net::close_listen,
                             nullptr,
                             nullptr,
                             net::make_v_device<nccl::VDevicePropsV9>};

nccl::NetV10 ncclNetPlugin_v10{net::kPluginName,
                               net::init_v10,
                               net::devices,
                               net::get_properties<nccl::NetPropertiesV10>,
                               net::listen,
                               net::connect_v10,
                               net::accept,
                               net::reg_mr,
                               net::reg_mr_dma_buf,
                               net::dereg_mr,
                               net::isend_v10,
                               net::irecv_v10,
                               net::iflush,
                               net::test,
                               net::close_send,
                               net::close_recv,
                               net::close_listen,
                               nullptr,
                               nullptr,
                               net::make_v_device<nccl::VDevicePropsV10>};

nccl::NetV11 ncclNetPlugin_v11{net::kPluginName,
                               net::init_new<11>,
                               net::devices,
                               net::get_properties<nccl::NetPropertiesV11>,
                               net::listen_in,
                               net::connect_in,
                               net::accept,
                               net::reg_mr,
                               net::reg_mr_dma_buf,
                               net::dereg_mr,
                               net::isend_v10,
                               net::irecv_v10,
                               net::iflush,
                               net::test,
                               net::close_send,
                               net::close_recv,
                               net::close_listen,
                               nullptr,
                               nullptr,
                               net::make_v_device<nccl::VDevicePropsV11>,
                               net::finalize,
                               net::set_net_attr};

nccl::NetV12 ncclNetPlugin_v12{net::kPluginName,
                               net::init_new<12>,
                               net::devices,
                               net::get_properties<nccl::NetPropertiesV12>,
                               net::listen_in,
                               net::connect_in,
                               net::accept,
                               net::reg_mr,
                               net::reg_mr_dma_buf,
                               net::dereg_mr,
                               net::isend_v10,
                               net::irecv_v10,
                               net::iflush,
                               net::test,
                               net::close_send,
                               net::close_recv,
                               net::close_listen,
                               nullptr,
                               nullptr,
                               net::make_v_device<nccl::VDevicePropsV12>,
                               net::finalize,
                               net::set_net_attr};
