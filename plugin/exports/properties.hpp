// SPDX-License-Identifier: Apache-2.0
// A device's properties in the form of each version of the ABI.
#pragma once

#include "plugin/exports/calls.hpp"

namespace gdrx::net {

inline constexpr int kMaxComms = 65535;
inline constexpr std::size_t kMaxMessage = std::size_t{1} << 30;

template <class Properties>
void fill_head(const NetDevice& device, Properties& out) {
  // NCCL's structs take char*; nobody writes through it.
  out.name = const_cast<char*>(device.name.c_str());
  out.pci_path = device.pci_path.empty() ? nullptr : const_cast<char*>(device.pci_path.c_str());
  out.guid = device.guid;
  out.ptr_support = nccl::kPtrHost | (Plugin::instance().takes_gpu_memory() ? nccl::kPtrCuda : 0);
  out.reg_is_global = 0;
  out.speed = device.speed;
  out.port = device.port;
  out.latency = device.latency;
  out.max_comms = kMaxComms;
  out.max_recvs = static_cast<int>(kMaxGroup);
  out.net_device_type = nccl::kDeviceHost;
  out.net_device_version = nccl::kDeviceVersionInvalid;
}

template <class Properties>
NetResult get_properties(int index, Properties* out) {
  return guarded("getProperties", [&]() -> Result<void> {
    const NetDevice& device = *GDRX_TRY(Plugin::instance().device(index));
    *out = {};
    fill_head(device, *out);
    if constexpr (requires { out->v_props; }) {
      out->force_flush = 0;
      out->v_props.ndevs = 1;
      out->v_props.devs[0] = index;
      out->max_p2p_bytes = kMaxMessage;
      out->max_coll_bytes = kMaxMessage;
    }
    if constexpr (requires { out->max_multi_request_size; }) out->max_multi_request_size = 1;
    if constexpr (requires { out->rail_id; }) {
      out->rail_id = nccl::kUndefined;
      out->plane_id = nccl::kUndefined;
    }
    return {};
  });
}

}  // namespace gdrx::net
