// SPDX-License-Identifier: Apache-2.0
// A device's properties in the form of each version of the ABI.
#pragma once

#include <algorithm>
#include <iterator>
#include <span>

#include "plugin/exports/net_calls.hpp"

namespace gdrx::net {

inline constexpr int kMaxComms = 65535;
inline constexpr std::size_t kMaxMessage = std::size_t{1} << 30;

template <class Properties>
void fill_head(const NetDevice& device, Properties& out) {
  // NCCL's structs take char*; nobody writes through it.
  out.name = const_cast<char*>(device.name.c_str());
  out.pci_path = device.pci_path.empty() ? nullptr : const_cast<char*>(device.pci_path.c_str());
  out.guid = device.guid;
  out.ptr_support = device.pointers;
  out.reg_is_global = device.reg_is_global ? 1 : 0;
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
      out->force_flush = device.force_flush ? 1 : 0;
      if (device.parts.size() > std::size(out->v_props.devs)) {
        return fail(Errc::invalid_argument, device.name + " has more ports than this ABI can name");
      }
      out->v_props.ndevs = std::max(1, static_cast<int>(device.parts.size()));
      out->v_props.devs[0] = index;
      std::copy(device.parts.begin(), device.parts.end(), out->v_props.devs);
      out->max_p2p_bytes = kMaxMessage;
      out->max_coll_bytes = kMaxMessage;
    }
    if constexpr (requires { out->max_multi_request_size; }) out->max_multi_request_size = 1;
    if constexpr (requires { out->rail_id; }) {
      out->rail_id = static_cast<std::int16_t>(device.rail);
      out->plane_id = static_cast<std::int16_t>(device.plane);
    }
    return {};
  });
}

template <class Parts>
NetResult make_v_device(int* device, Parts* parts) {
  return guarded("makeVDevice", [&]() -> Result<void> {
    if (parts->ndevs < 1 || static_cast<std::size_t>(parts->ndevs) > std::size(parts->devs)) {
      return fail(Errc::invalid_argument, "a device of an impossible number of ports");
    }
    const std::span<const int> all(parts->devs, static_cast<std::size_t>(parts->ndevs));
    *device = all.size() == 1 ? all[0] : GDRX_TRY(Plugin::instance().make_virtual(all));
    return {};
  });
}

}  // namespace gdrx::net
