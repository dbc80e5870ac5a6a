// SPDX-License-Identifier: Apache-2.0
// Which types belong to which version of the ABI, and what NCCL fills in for the older ones.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net-conformance/driver/net.hpp"

namespace gdrx::conformance {

template <int V>
struct Version;

template <>
struct Version<8> {
  using Table = nccl::NetV8;
  using Props = nccl::NetPropertiesV8;
  using Size = int;
};
template <>
struct Version<9> {
  using Table = nccl::NetV9;
  using Props = nccl::NetPropertiesV9;
  using VDevice = nccl::VDevicePropsV9;
  using Size = std::size_t;
};
template <>
struct Version<10> {
  using Table = nccl::NetV10;
  using Props = nccl::NetPropertiesV10;
  using VDevice = nccl::VDevicePropsV10;
  using Size = std::size_t;
};
template <>
struct Version<11> {
  using Table = nccl::NetV11;
  using Props = nccl::NetPropertiesV11;
  using VDevice = nccl::VDevicePropsV11;
  using Size = std::size_t;
};
template <>
struct Version<12> {
  using Table = nccl::NetV12;
  using Props = nccl::NetPropertiesV12;
  using VDevice = nccl::VDevicePropsV12;
  using Size = std::size_t;
};

/// The properties as v12 has them; `device` stands for itself where there are no virtual ones.
template <int V>
Properties widen(int device, const typename Version<V>::Props& from) {
  Properties to{};
  to.name = from.name;
  to.pci_path = from.pci_path;
  to.guid = from.guid;
  to.ptr_support = from.ptr_support;
  to.reg_is_global = from.reg_is_global;
  to.speed = from.speed;
  to.port = from.port;
  to.latency = from.latency;
  to.max_comms = from.max_comms;
  to.max_recvs = from.max_recvs;
  to.net_device_type = from.net_device_type;
  to.net_device_version = from.net_device_version;
  to.v_props.ndevs = 1;
  to.v_props.devs[0] = device;
  to.max_p2p_bytes = nccl::kMaxNetSizeV8;
  to.max_coll_bytes = nccl::kMaxNetSizeV8;
  to.max_multi_request_size = 1;
  to.rail_id = -1;
  to.plane_id = -1;
  if constexpr (V >= 9) {
    to.force_flush = from.force_flush;
    to.v_props.ndevs = from.v_props.ndevs;
    constexpr int kDevices = static_cast<int>(sizeof from.v_props.devs / sizeof(int));
    for (int i = 0; i < kDevices; ++i) {
      to.v_props.devs[i] = from.v_props.devs[i];
    }
    to.max_p2p_bytes = from.max_p2p_bytes;
    to.max_coll_bytes = from.max_coll_bytes;
  }
  if constexpr (V >= 11) {
    to.max_multi_request_size = from.max_multi_request_size;
  }
  if constexpr (V >= 12) {
    to.rail_id = from.rail_id;
    to.plane_id = from.plane_id;
  }
  return to;
}

}  // namespace gdrx::conformance
