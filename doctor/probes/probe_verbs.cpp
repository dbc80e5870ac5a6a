// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

#include "base/system_library.hpp"
#include "doctor/probes/probes.hpp"

namespace gdrx::doctor {
namespace {

struct Verbs {
  void** (*list)(int*) = nullptr;
  void (*free_list)(void**) = nullptr;
  const char* (*name)(void*) = nullptr;
  void* (*open)(void*) = nullptr;
  int (*close)(void*) = nullptr;
  void* (*allocate_pd)(void*) = nullptr;
  int (*free_pd)(void*) = nullptr;
  int (*query_port)(void*, std::uint8_t, void*) = nullptr;
  void* (*register_dmabuf)(void*, std::uint64_t, std::size_t, std::uint64_t, int, int) = nullptr;
};

bool take(SystemLibrary& library, Verbs& verbs) {
  return library.take({
      {verbs.register_dmabuf, "ibv_reg_dmabuf_mr", Symbol::Need::newer},  // from rdma-core 34
      {verbs.list, "ibv_get_device_list"},
      {verbs.free_list, "ibv_free_device_list"},
      {verbs.name, "ibv_get_device_name"},
      {verbs.open, "ibv_open_device"},
      {verbs.close, "ibv_close_device"},
      {verbs.allocate_pd, "ibv_alloc_pd"},
      {verbs.free_pd, "ibv_dealloc_pd"},
      {verbs.query_port, "ibv_query_port"},
  });
}

VerbsDevice device_facts(const Verbs& verbs, void* device) {
  VerbsDevice found;
  found.name = verbs.name(device);
  errno = 0;
  void* context = verbs.open(device);
  if (context == nullptr) {
    found.open_errno = errno != 0 ? errno : EIO;
    return found;
  }
  // The answer begins with state, max_mtu and active_mtu in every version of the structure; the
  // rest has grown, so there is room.
  std::array<int, 128> port{};
  if (verbs.query_port(context, 1, port.data()) == 0) {
    found.max_mtu = port[1];
    found.active_mtu = port[2];
  }
  void* domain = verbs.register_dmabuf == nullptr ? nullptr : verbs.allocate_pd(context);
  found.dmabuf_errno = EOPNOTSUPP;
  if (domain != nullptr) {
    errno = 0;
    // No descriptor is -1: a driver that looks at it answers EBADF, one without dma-buf does not.
    if (verbs.register_dmabuf(domain, 0, 0, 0, -1, 0) == nullptr) found.dmabuf_errno = errno;
    verbs.free_pd(domain);
  }
  verbs.close(context);
  return found;
}

}  // namespace

Result<VerbsFacts> probe_verbs() {
  SystemLibrary library = SystemLibrary::open({"libibverbs.so.1"});
  Verbs verbs;
  if (!take(library, verbs)) return tl::unexpected(library.error());
  VerbsFacts facts;
  facts.has_dmabuf = verbs.register_dmabuf != nullptr;
  int count = 0;
  void** devices = verbs.list(&count);
  if (devices == nullptr) return facts;
  for (int i = 0; i < count; ++i) facts.devices.push_back(device_facts(verbs, devices[i]));
  verbs.free_list(devices);
  return facts;
}

}  // namespace gdrx::doctor
