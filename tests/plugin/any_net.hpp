// SPDX-License-Identifier: Apache-2.0
// A plugin's library behind one interface, whichever version of the ABI it is asked for: NCCL's
// side of the calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plugin/abi/net.hpp"

namespace gdrx::test {

using nccl::NetResult;

struct Properties {
  std::string name;
  int ptr_support = 0;
  int max_comms = 0;
  int max_recvs = 0;
  int speed = 0;
  int force_flush = 0;  // 0 before v9
  int reg_is_global = 0;
  std::size_t max_p2p_bytes = nccl::kMaxNetSizeV8;
};

/// Calls of one version. `context` is ignored before v11.
class AnyNet {
 public:
  virtual ~AnyNet() = default;
  /// What init() (v11 and later) or connect() (v10) is told; unheard of before.
  int traffic_class = nccl::kUndefined;
  /// Null if the library cannot be loaded or has no such version; `why` says it.
  static std::unique_ptr<AnyNet> open(const std::string& path, int version, std::string* why);

  virtual std::string name() const = 0;
  virtual NetResult init(void** context, nccl::LogFunction log) = 0;
  virtual NetResult finalize(void* context) = 0;
  virtual NetResult devices(int* count) = 0;
  virtual NetResult properties(int device, Properties* out) = 0;
  virtual bool takes_hints() const = 0;  // v11 and later
  virtual NetResult set_net_attr(void* context, nccl::NetAttributes hints) = 0;
  virtual NetResult listen(void* context, int device, void* handle, void** comm) = 0;
  virtual NetResult connect(void* context, int device, void* handle, void** comm) = 0;
  virtual NetResult accept(void* listener, void** comm) = 0;
  virtual NetResult reg_mr(void* comm, void* data, std::size_t size, int type, void** mr) = 0;
  virtual NetResult reg_mr_dma_buf(void* comm, void* data, std::size_t size, std::uint64_t offset,
                                   int fd, void** mr) = 0;
  virtual NetResult dereg_mr(void* comm, void* mr) = 0;
  virtual NetResult isend(void* comm, void* data, std::size_t size, int tag, void* mr,
                          void** request) = 0;
  virtual NetResult irecv(void* comm, std::vector<void*> data, std::vector<std::size_t> sizes,
                          std::vector<int> tags, std::vector<void*> mrs, void** request) = 0;
  /// Of one buffer.
  virtual NetResult iflush(void* comm, void* data, int size, void* mr, void** request) = 0;
  virtual NetResult test(void* request, int* done, int* sizes) = 0;
  virtual NetResult close_send(void* comm) = 0;
  virtual NetResult close_recv(void* comm) = 0;
  virtual NetResult close_listen(void* comm) = 0;
};

}  // namespace gdrx::test
