// SPDX-License-Identifier: Apache-2.0
// The control verbs as values: filled from libibverbs by dlopen, or by the simulated HCA of the
// tests. Data verbs (post, poll) go through ibv_context::ops, as libibverbs itself does it.
#pragma once

#include <infiniband/verbs.h>

#include <functional>
#include <memory>

#include "gdrx/result.hpp"

namespace gdrx::verbs {

/// Meaning, arguments and results are those of the ibv_ function of the same name.
struct VerbsTable {
  std::function<ibv_device**(int*)> get_device_list;
  std::function<void(ibv_device**)> free_device_list;
  std::function<ibv_context*(ibv_device*)> open_device;
  std::function<int(ibv_context*)> close_device;
  std::function<int(ibv_context*, ibv_device_attr*)> query_device;
  std::function<int(ibv_context*, std::uint8_t, ibv_port_attr*)> query_port;
  /// gid_type is ~0u where the library is too old to tell it.
  std::function<int(ibv_context*, std::uint8_t, std::uint32_t, ibv_gid_entry*)> query_gid;
  std::function<int(ibv_context*, std::uint8_t, int, __be16*)> query_pkey;
  std::function<ibv_pd*(ibv_context*)> alloc_pd;
  std::function<int(ibv_pd*)> dealloc_pd;
  std::function<ibv_mr*(ibv_pd*, void*, std::size_t, int access)> reg_mr;
  std::function<ibv_mr*(ibv_pd*, std::uint64_t offset, std::size_t, std::uint64_t iova, int fd,
                        int access)>
      reg_dmabuf_mr;  // empty before rdma-core 34
  std::function<int(ibv_mr*)> dereg_mr;
  std::function<ibv_cq*(ibv_context*, int cqe)> create_cq;
  std::function<int(ibv_cq*)> destroy_cq;
  std::function<ibv_qp*(ibv_pd*, ibv_qp_init_attr*)> create_qp;
  std::function<int(ibv_qp*, ibv_qp_attr*, int mask)> modify_qp;
  std::function<int(ibv_qp*)> destroy_qp;
  /// Empty before rdma-core 29.
  std::function<int(ibv_qp*, ibv_ece*)> query_ece;
  std::function<int(ibv_qp*, ibv_ece*)> set_ece;
  std::function<ibv_ah*(ibv_pd*, ibv_ah_attr*)> create_ah;
  std::function<int(ibv_ah*)> destroy_ah;
  /// Makes get_async_event() return at once when there is none.
  std::function<int(ibv_context*)> set_nonblocking;
  std::function<int(ibv_context*, ibv_async_event*)> get_async_event;
  std::function<void(ibv_async_event*)> ack_async_event;
  /// No verb: subnet_bits_of() of an Ethernet port's GID.
  std::function<int(const ibv_gid&)> subnet_bits;
  /// No verb: the device's folder in sysfs, links resolved; empty where there is none.
  std::function<std::string(const ibv_device*)> pci_folder;
  /// IBV_ACCESS_RELAXED_ORDERING is understood (ibv_reg_mr_iova2 is there).
  bool relaxed_ordering = false;
};

/// Errc::unsupported says what to install.
Result<std::shared_ptr<const VerbsTable>> load_verbs();

}  // namespace gdrx::verbs
