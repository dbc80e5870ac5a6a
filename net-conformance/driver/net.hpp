// SPDX-License-Identifier: Apache-2.0
// One interface over every version of NCCL's net plugin ABI: what NCCL itself does with its shims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "plugin/abi/net.hpp"

namespace gdrx::conformance {

using nccl::NetResult;
using Properties = nccl::NetPropertiesV12;  // older versions' gaps filled as NCCL fills them

/// Members of the table that may be null, and those that a version has or lacks.
enum class Optional { reg_mr_dma_buf, get_device_mr, irecv_consumed, make_v_device, set_net_attr };

/// The calls of a plugin, with the types of v12. Results are the plugin's own, unjudged. Threads:
/// as the plugin allows.
class Net {
 public:
  virtual ~Net() = default;
  virtual int version() const = 0;
  virtual const char* name() const = 0;
  /// The first member that must not be null and is; null if there is none.
  virtual const char* missing() const = 0;
  virtual bool has(Optional member) const = 0;

  /// Before v11 there is no context: *context stays null.
  virtual NetResult init(void** context, std::uint64_t comm_id, nccl::LogFunction log) = 0;
  virtual NetResult finalize(void* context) = 0;
  virtual NetResult devices(int* count) = 0;
  /// `overrun`: true if bytes after the version's structure were written.
  virtual NetResult properties(int device, Properties* properties, bool* overrun) = 0;
  virtual NetResult make_v_device(int* device, const nccl::VDevicePropsV12& parts) = 0;
  virtual NetResult set_net_attr(void* context, nccl::NetAttributes* attributes) = 0;

  virtual NetResult listen(void* context, int device, void* handle, void** comm) = 0;
  virtual NetResult connect(void* context, int device, void* handle, void** comm,
                            nccl::NetDeviceHandle** device_comm) = 0;
  virtual NetResult accept(void* listener, void** comm, nccl::NetDeviceHandle** device_comm) = 0;
  virtual NetResult close_send(void* comm) = 0;
  virtual NetResult close_recv(void* comm) = 0;
  virtual NetResult close_listen(void* comm) = 0;

  virtual NetResult reg_mr(void* comm, void* data, std::size_t size, int type, void** mhandle) = 0;
  virtual NetResult reg_mr_dma_buf(void* comm, void* data, std::size_t size, int type,
                                   std::uint64_t offset, int fd, void** mhandle) = 0;
  virtual NetResult dereg_mr(void* comm, void* mhandle) = 0;

  virtual NetResult isend(void* comm, void* data, std::size_t size, int tag, void* mhandle,
                          void** request) = 0;
  /// n of each array; *request is the plugin's to read and to write.
  virtual NetResult irecv(void* comm, int n, void** data, std::size_t* sizes, int* tags,
                          void** mhandles, void** request) = 0;
  virtual NetResult iflush(void* comm, int n, void** data, int* sizes, void** mhandles,
                           void** request) = 0;
  virtual NetResult test(void* request, int* done, int* sizes) = 0;
  virtual NetResult irecv_consumed(void* comm, int n, void* request) = 0;
};

/// Wraps the table that the symbol of `version` (8 to 12) points to. The table outlives it.
std::unique_ptr<Net> adapt(int version, void* table);

const char* to_string(NetResult result) noexcept;

}  // namespace gdrx::conformance
