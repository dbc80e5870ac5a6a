// SPDX-License-Identifier: Apache-2.0
// What a device says of itself, in each version of the ABI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "plugin/abi/types.hpp"

namespace gdrx::nccl {

/// Physical devices that a virtual one is made of.
struct VDevicePropsV9 {
  int ndevs;
  int devs[kMaxDevicesPerNicV9];
};
using VDevicePropsV10 = VDevicePropsV9;
using VDevicePropsV11 = VDevicePropsV9;
struct VDevicePropsV12 {
  int ndevs;
  int devs[kMaxDevicesPerNicV12];
};
static_assert(sizeof(VDevicePropsV9) == 20 && offsetof(VDevicePropsV9, devs) == 4);
static_assert(sizeof(VDevicePropsV12) == 36 && offsetof(VDevicePropsV12, devs) == 4);

struct NetPropertiesV8 {
  char* name;      // unique on the host
  char* pci_path;  // in /sys, may be null
  std::uint64_t guid;
  int ptr_support;
  int reg_is_global;
  int speed;  // Mbit/s
  int port;
  float latency;  // us
  int max_comms;
  int max_recvs;
  int net_device_type;
  int net_device_version;
};
static_assert(std::is_standard_layout_v<NetPropertiesV8>);
static_assert(sizeof(NetPropertiesV8) == 64 && offsetof(NetPropertiesV8, name) == 0 &&
              offsetof(NetPropertiesV8, pci_path) == 8 && offsetof(NetPropertiesV8, guid) == 16 &&
              offsetof(NetPropertiesV8, ptr_support) == 24 &&
              offsetof(NetPropertiesV8, reg_is_global) == 28 &&
              offsetof(NetPropertiesV8, speed) == 32 && offsetof(NetPropertiesV8, port) == 36 &&
              offsetof(NetPropertiesV8, latency) == 40 &&
              offsetof(NetPropertiesV8, max_comms) == 44 &&
              offsetof(NetPropertiesV8, max_recvs) == 48 &&
              offsetof(NetPropertiesV8, net_device_type) == 52 &&
              offsetof(NetPropertiesV8, net_device_version) == 56);

struct NetPropertiesV9 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int ptr_support;
  int reg_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_recvs;
  int net_device_type;
  int net_device_version;
  VDevicePropsV9 v_props;
  std::size_t max_p2p_bytes;
  std::size_t max_coll_bytes;
};
using NetPropertiesV10 = NetPropertiesV9;

struct NetPropertiesV11 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int ptr_support;
  int reg_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_recvs;
  int net_device_type;
  int net_device_version;
  VDevicePropsV11 v_props;
  std::size_t max_p2p_bytes;
  std::size_t max_coll_bytes;
  int max_multi_request_size;
};

struct NetPropertiesV12 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int ptr_support;
  int reg_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_recvs;
  int net_device_type;
  int net_device_version;
  VDevicePropsV12 v_props;
  std::size_t max_p2p_bytes;
  std::size_t max_coll_bytes;
  int max_multi_request_size;
  std::int16_t rail_id;
  std::int16_t plane_id;
};

namespace detail {
/// The part that v9 to v12 have in common.
template <class P>
constexpr bool head_as_v9() {
  return std::is_standard_layout_v<P> && offsetof(P, name) == 0 && offsetof(P, pci_path) == 8 &&
         offsetof(P, guid) == 16 && offsetof(P, ptr_support) == 24 &&
         offsetof(P, reg_is_global) == 28 && offsetof(P, force_flush) == 32 &&
         offsetof(P, speed) == 36 && offsetof(P, port) == 40 && offsetof(P, latency) == 44 &&
         offsetof(P, max_comms) == 48 && offsetof(P, max_recvs) == 52 &&
         offsetof(P, net_device_type) == 56 && offsetof(P, net_device_version) == 60 &&
         offsetof(P, v_props) == 64;
}
}  // namespace detail

static_assert(detail::head_as_v9<NetPropertiesV9>() && sizeof(NetPropertiesV9) == 104 &&
              offsetof(NetPropertiesV9, max_p2p_bytes) == 88 &&
              offsetof(NetPropertiesV9, max_coll_bytes) == 96);
static_assert(detail::head_as_v9<NetPropertiesV11>() && sizeof(NetPropertiesV11) == 112 &&
              offsetof(NetPropertiesV11, max_p2p_bytes) == 88 &&
              offsetof(NetPropertiesV11, max_coll_bytes) == 96 &&
              offsetof(NetPropertiesV11, max_multi_request_size) == 104);
static_assert(detail::head_as_v9<NetPropertiesV12>() && sizeof(NetPropertiesV12) == 128 &&
              offsetof(NetPropertiesV12, max_p2p_bytes) == 104 &&
              offsetof(NetPropertiesV12, max_coll_bytes) == 112 &&
              offsetof(NetPropertiesV12, max_multi_request_size) == 120 &&
              offsetof(NetPropertiesV12, rail_id) == 124 &&
              offsetof(NetPropertiesV12, plane_id) == 126);

}  // namespace gdrx::nccl
