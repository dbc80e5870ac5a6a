// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/verbs_table.hpp"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/system_library.hpp"
#include "transport/bootstrap/fork.hpp"
#include "transport/verbs/subnet.hpp"

namespace gdrx::verbs {
namespace {

constexpr const char* kLibrary = "libibverbs.so.1";

// The version is part of the name: libibverbs keeps functions of 1.0 with other structures under
// the same names.
class Loader {
 public:
  explicit Loader(SystemLibrary& library) : library_(library) {}

  template <class Function>
  Function* need(const char* name, const char* version) {
    return reinterpret_cast<Function*>(library_.need(name, version));
  }
  template <class Function>
  Function* find(const char* name, const char* version) {
    return reinterpret_cast<Function*>(library_.find(name, version));
  }
  bool whole() const { return library_.whole(); }

 private:
  SystemLibrary& library_;
};

using QueryPort = int(ibv_context*, std::uint8_t, _compat_ibv_port_attr*);
using QueryGid = int(ibv_context*, std::uint8_t, int, ibv_gid*);
using QueryGidEx = int(ibv_context*, std::uint32_t, std::uint32_t, ibv_gid_entry*, std::uint32_t,
                       std::size_t);
using RegMr = ibv_mr*(ibv_pd*, void*, std::size_t, int);
using RegMrIova2 = ibv_mr*(ibv_pd*, void*, std::size_t, std::uint64_t, unsigned);
using CreateCq = ibv_cq*(ibv_context*, int, void*, ibv_comp_channel*, int);

int query_port(QueryPort* old, ibv_context* context, std::uint8_t port, ibv_port_attr* attr) {
  *attr = {};
  verbs_context* extended = verbs_get_ctx_op(context, query_port);
  if (extended != nullptr) return extended->query_port(context, port, attr, sizeof *attr);
  return old(context, port, reinterpret_cast<_compat_ibv_port_attr*>(attr));
}

int query_gid(QueryGidEx* with_type, QueryGid* plain, ibv_context* context, std::uint8_t port,
              std::uint32_t index, ibv_gid_entry* entry) {
  *entry = {};
  if (with_type != nullptr) return with_type(context, port, index, entry, 0, sizeof *entry);
  entry->gid_index = index;
  entry->port_num = port;
  entry->gid_type = ~0U;
  return plain(context, port, static_cast<int>(index), &entry->gid) == 0 ? 0 : EINVAL;
}

int set_nonblocking(ibv_context* context) {
  const int flags = fcntl(context->async_fd, F_GETFL);
  return flags < 0 || fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) != 0 ? errno : 0;
}

// What a process has of a NIC ends with the last copy of its descriptors. A child would keep a dead
// rank's queue pairs, which go on to acknowledge what its peers send, and its pinned memory. And
// what it destroys by them, as a program's objects at its end, is the parent's.
ibv_context* open_unforked(ibv_context* (*open)(ibv_device*), ibv_device* device) {
  ibv_context* context = open(device);
  if (context == nullptr) return nullptr;
  Unforked::keep(context->cmd_fd);
  Unforked::keep(context->async_fd);
  return context;
}

void fill_registration(Loader& load, VerbsTable& table) {
  auto* plain = load.need<RegMr>("ibv_reg_mr", "IBVERBS_1.1");
  auto* iova2 = load.find<RegMrIova2>("ibv_reg_mr_iova2", "IBVERBS_1.8");
  table.relaxed_ordering = iova2 != nullptr;
  table.reg_mr = [plain, iova2](ibv_pd* pd, void* address, std::size_t length, int access) {
    if (iova2 == nullptr) return plain(pd, address, length, access);
    return iova2(pd, address, length, reinterpret_cast<std::uintptr_t>(address),
                 static_cast<unsigned>(access));
  };
  using RegDmabuf = ibv_mr*(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int);
  if (auto* dmabuf = load.find<RegDmabuf>("ibv_reg_dmabuf_mr", "IBVERBS_1.12")) {
    table.reg_dmabuf_mr = dmabuf;
  }
  table.dereg_mr = load.need<int(ibv_mr*)>("ibv_dereg_mr", "IBVERBS_1.1");
}

void fill_device(Loader& load, VerbsTable& table) {
  table.get_device_list = load.need<ibv_device**(int*)>("ibv_get_device_list", "IBVERBS_1.1");
  table.free_device_list = load.need<void(ibv_device**)>("ibv_free_device_list", "IBVERBS_1.1");
  auto* open = load.need<ibv_context*(ibv_device*)>("ibv_open_device", "IBVERBS_1.1");
  table.open_device = [open](ibv_device* device) { return open_unforked(open, device); };
  auto* close = load.need<int(ibv_context*)>("ibv_close_device", "IBVERBS_1.1");
  table.close_device = [close](ibv_context* context) {
    Unforked::forget(context->cmd_fd);
    Unforked::forget(context->async_fd);
    return close(context);
  };
  table.query_device =
      load.need<int(ibv_context*, ibv_device_attr*)>("ibv_query_device", "IBVERBS_1.1");
  auto* port = load.need<QueryPort>("ibv_query_port", "IBVERBS_1.1");
  table.query_port = [port](ibv_context* context, std::uint8_t number, ibv_port_attr* attr) {
    return query_port(port, context, number, attr);
  };
  auto* gid = load.need<QueryGid>("ibv_query_gid", "IBVERBS_1.1");
  auto* gid_ex = load.find<QueryGidEx>("_ibv_query_gid_ex", "IBVERBS_1.11");
  table.query_gid = [gid, gid_ex](ibv_context* context, std::uint8_t number, std::uint32_t index,
                                  ibv_gid_entry* entry) {
    return query_gid(gid_ex, gid, context, number, index, entry);
  };
  table.query_pkey =
      load.need<int(ibv_context*, std::uint8_t, int, __be16*)>("ibv_query_pkey", "IBVERBS_1.1");
  table.set_nonblocking = set_nonblocking;
  table.get_async_event =
      load.need<int(ibv_context*, ibv_async_event*)>("ibv_get_async_event", "IBVERBS_1.1");
  table.ack_async_event = load.need<void(ibv_async_event*)>("ibv_ack_async_event", "IBVERBS_1.1");
}

void fill_queues(Loader& load, VerbsTable& table) {
  table.alloc_pd = load.need<ibv_pd*(ibv_context*)>("ibv_alloc_pd", "IBVERBS_1.1");
  table.dealloc_pd = load.need<int(ibv_pd*)>("ibv_dealloc_pd", "IBVERBS_1.1");
  auto* create_cq = load.need<CreateCq>("ibv_create_cq", "IBVERBS_1.1");
  table.create_cq = [create_cq](ibv_context* context, int entries) {
    return create_cq(context, entries, nullptr, nullptr, 0);
  };
  table.destroy_cq = load.need<int(ibv_cq*)>("ibv_destroy_cq", "IBVERBS_1.1");
  table.create_qp = load.need<ibv_qp*(ibv_pd*, ibv_qp_init_attr*)>("ibv_create_qp", "IBVERBS_1.1");
  table.modify_qp = load.need<int(ibv_qp*, ibv_qp_attr*, int)>("ibv_modify_qp", "IBVERBS_1.1");
  table.destroy_qp = load.need<int(ibv_qp*)>("ibv_destroy_qp", "IBVERBS_1.1");
  if (auto* query = load.find<int(ibv_qp*, ibv_ece*)>("ibv_query_ece", "IBVERBS_1.10")) {
    table.query_ece = query;
  }
  if (auto* set = load.find<int(ibv_qp*, ibv_ece*)>("ibv_set_ece", "IBVERBS_1.10")) {
    table.set_ece = set;
  }
  table.create_ah = load.need<ibv_ah*(ibv_pd*, ibv_ah_attr*)>("ibv_create_ah", "IBVERBS_1.1");
  table.destroy_ah = load.need<int(ibv_ah*)>("ibv_destroy_ah", "IBVERBS_1.1");
}

/// Keeps the pages that a NIC writes with this process when it forks. Kernels from 5.12 give the
/// child a copy of such pages. ibv_fork_init() hides them from the child instead, which dies where
/// it touches one, and does so until rdma-core 51 even where the kernel copies: there it must not
/// be called.
void keep_pages_over_fork(Loader& load) {
  auto* init = load.need<int()>("ibv_fork_init", "IBVERBS_1.1");
  auto* status = load.find<ibv_fork_status()>("ibv_is_fork_initialized", "IBVERBS_1.13");
  if (!load.whole() || (status != nullptr && status() == IBV_FORK_UNNEEDED)) return;
  (void)init();  // refused once memory is registered by somebody else: then it is their choice
}

}  // namespace

Result<std::shared_ptr<const VerbsTable>> load_verbs() {
  SystemLibrary library =
      SystemLibrary::open({kLibrary}, "install rdma-core (libibverbs1, ibverbs-providers)");
  library.keep();  // its providers keep state until the process ends
  if (!library.opened()) return tl::unexpected(library.error());
  Loader load(library);
  auto table = std::make_shared<VerbsTable>();
  fill_device(load, *table);
  fill_queues(load, *table);
  fill_registration(load, *table);
  table->subnet_bits = &subnet_bits_of;
  table->pci_folder = [](const ibv_device* device) {
    std::error_code error;
    return std::filesystem::canonical(std::string(device->ibdev_path) + "/device", error).string();
  };
  keep_pages_over_fork(load);
  if (!library.whole()) {
    return tl::unexpected(library.error("install rdma-core 17 or newer"));
  }
  return std::shared_ptr<const VerbsTable>(std::move(table));
}

}  // namespace gdrx::verbs
