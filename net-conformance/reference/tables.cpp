// SPDX-License-Identifier: Apache-2.0
// The symbols that NCCL looks for, v8 to v12.
#include "net-conformance/reference/tables.hpp"

#include <array>
#include <cstddef>
#include <memory>

#include "net-conformance/reference/comm.hpp"

namespace gdrx::reference {
namespace {

using nccl::CommConfig;
using nccl::LogFunction;
using nccl::NetDeviceHandle;
using nccl::ProfilerFunction;

NetResult init_v8(LogFunction) { return NetResult::success; }
NetResult init_v10(LogFunction, ProfilerFunction) { return NetResult::success; }
NetResult init_v11(void** context, std::uint64_t, CommConfig*, LogFunction, ProfilerFunction) {
  *context = std::make_unique<char>().release();
  return NetResult::success;
}
NetResult finalize(void* context) {
  delete static_cast<char*>(context);
  return NetResult::success;
}
NetResult set_net_attr(void*, nccl::NetAttributes*) { return NetResult::success; }

/// Older properties are the newer ones with parts left out.
template <class Props>
NetResult get_properties(int device, Props* out) {
  nccl::NetPropertiesV12 all{};
  const NetResult result = properties(device, &all);
  *out = {};
  out->name = all.name;
  out->guid = all.guid;
  out->ptr_support = all.ptr_support;
  out->reg_is_global = all.reg_is_global;
  out->speed = all.speed;
  out->port = all.port;
  out->latency = all.latency;
  out->max_comms = all.max_comms;
  out->max_recvs = all.max_recvs;
  if constexpr (requires { out->v_props; }) {
    out->v_props.ndevs = all.v_props.ndevs;
    out->v_props.devs[0] = all.v_props.devs[0];
    out->max_p2p_bytes = all.max_p2p_bytes;
    out->max_coll_bytes = all.max_coll_bytes;
  }
  if constexpr (requires { out->max_multi_request_size; }) {
    out->max_multi_request_size = all.max_multi_request_size;
  }
  if constexpr (requires { out->rail_id; }) {
    out->rail_id = all.rail_id;
    out->plane_id = all.plane_id;
  }
  return result;
}

NetResult listen_v8(int device, void* handle, void** comm) {
  return listen(nullptr, device, handle, comm);
}
NetResult connect_v8(int device, void* handle, void** comm, NetDeviceHandle**) {
  return connect(nullptr, device, handle, comm);
}
NetResult connect_v10(int device, CommConfig*, void* handle, void** comm, NetDeviceHandle**) {
  return connect(nullptr, device, handle, comm);
}
NetResult connect_v11(void* context, int device, void* handle, void** comm, NetDeviceHandle**) {
  return connect(context, device, handle, comm);
}
NetResult accept_v8(void* listener, void** comm, NetDeviceHandle**) {
  return accept(listener, comm);
}

NetResult isend_v8(void* comm, void* data, int size, int tag, void*, void** request) {
  return isend(comm, data, static_cast<std::size_t>(size), tag, request);
}
NetResult isend_v9(void* comm, void* data, std::size_t size, int tag, void*, void** request) {
  return isend(comm, data, size, tag, request);
}
NetResult isend_v10(void* comm, void* data, std::size_t size, int tag, void*, void*,
                    void** request) {
  return isend(comm, data, size, tag, request);
}
NetResult irecv_v8(void* comm, int n, void** data, int* sizes, int* tags, void**, void** request) {
  std::array<std::size_t, kMaxRecvs> wide{};
  for (int i = 0; i < n && i < kMaxRecvs; ++i) {
    wide[static_cast<std::size_t>(i)] = static_cast<std::size_t>(sizes[i]);
  }
  return irecv(comm, n, data, wide.data(), tags, request);
}
NetResult irecv_v9(void* comm, int n, void** data, std::size_t* sizes, int* tags, void**,
                   void** request) {
  return irecv(comm, n, data, sizes, tags, request);
}
NetResult irecv_v10(void* comm, int n, void** data, std::size_t* sizes, int* tags, void**, void**,
                    void** request) {
  return irecv(comm, n, data, sizes, tags, request);
}
NetResult iflush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;  // host memory: nothing to wait for
  return NetResult::success;
}

/// What is the same in all versions.
template <class Table>
constexpr Table common() {
  Table table{};
  table.name = "Reference";
  table.devices = devices;
  table.get_properties = get_properties;
  table.accept = accept_v8;
  table.reg_mr = reg_mr;
  table.dereg_mr = dereg_mr;
  table.iflush = iflush;
  table.test = test;
  table.close_send = close_comm;
  table.close_recv = close_comm;
  table.close_listen = close_listener;
  return table;
}

template <class Table>
constexpr Table old(decltype(Table::isend) send, decltype(Table::irecv) receive) {
  Table table = common<Table>();
  table.init = init_v8;
  table.listen = listen_v8;
  table.connect = connect_v8;
  table.isend = send;
  table.irecv = receive;
  return table;
}

constexpr nccl::NetV10 table_v10() {
  auto table = common<nccl::NetV10>();
  table.init = init_v10;
  table.listen = listen_v8;
  table.connect = connect_v10;
  table.isend = isend_v10;
  table.irecv = irecv_v10;
  return table;
}

template <class Table>
constexpr Table with_contexts() {
  Table table = common<Table>();
  table.init = init_v11;
  table.listen = listen;
  table.connect = connect_v11;
  table.isend = isend_v10;
  table.irecv = irecv_v10;
  table.finalize = finalize;
  table.set_net_attr = set_net_attr;
  return table;
}

}  // namespace
}  // namespace gdrx::reference

#define GDRX_EXPORT __attribute__((visibility("default")))
extern "C" {
GDRX_EXPORT gdrx::nccl::NetV8 ncclNetPlugin_v8 =
    gdrx::reference::old<gdrx::nccl::NetV8>(gdrx::reference::isend_v8, gdrx::reference::irecv_v8);
GDRX_EXPORT gdrx::nccl::NetV9 ncclNetPlugin_v9 =
    gdrx::reference::old<gdrx::nccl::NetV9>(gdrx::reference::isend_v9, gdrx::reference::irecv_v9);
GDRX_EXPORT gdrx::nccl::NetV10 ncclNetPlugin_v10 = gdrx::reference::table_v10();
GDRX_EXPORT gdrx::nccl::NetV11 ncclNetPlugin_v11 =
    gdrx::reference::with_contexts<gdrx::nccl::NetV11>();
GDRX_EXPORT gdrx::nccl::NetV12 ncclNetPlugin_v12 =
    gdrx::reference::with_contexts<gdrx::nccl::NetV12>();
}
