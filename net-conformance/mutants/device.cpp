// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "net-conformance/mutants/track.hpp"

namespace gdrx::mutants {

namespace {

using Properties = nccl::NetPropertiesV12;

template <auto spoil>
NetResult spoilt(int device, Properties* properties) {
  const NetResult result = good().get_properties(device, properties);
  spoil(*properties);
  return result;
}

template <auto spoil>
void with_properties(NetV12& table) {
  table.get_properties = spoilt<spoil>;
}

constexpr Mutant kMutants[] = {
    {"null-member", [](NetV12& table) { table.iflush = nullptr; }},
    {"no-devices",
     [](NetV12& table) {
       table.devices = [](int* count) {
         *count = 0;
         return NetResult::success;
       };
     }},
    {"more-devices-each-time",
     [](NetV12& table) {
       table.devices = [](int* count) {
         static int calls = 0;
         const NetResult result = good().devices(count);
         *count += ++calls > 1 ? 1 : 0;
         return result;
       };
     }},
    {"writes-beyond-properties", with_properties<[](Properties& p) {
       reinterpret_cast<std::byte*>(&p + 1)[3] = std::byte{0};
     }>},
    {"one-name-for-all", with_properties<[](Properties& p) {
       static char name[] = "nic";
       p.name = name;
     }>},
    {"no-host-memory", with_properties<[](Properties& p) { p.ptr_support = 0; }>},
    {"no-speed", with_properties<[](Properties& p) { p.speed = 0; }>},
    {"negative-latency", with_properties<[](Properties& p) { p.latency = -1; }>},
    {"no-largest-message", with_properties<[](Properties& p) { p.max_p2p_bytes = 0; }>},
    {"unknown-offload", with_properties<[](Properties& p) { p.net_device_type = 5; }>},
    {"nine-parts", with_properties<[](Properties& p) { p.v_props.ndevs = 9; }>},
    {"another-guid-each-time", with_properties<[](Properties& p) {
       static std::uint64_t guid = 0;
       p.guid = ++guid;
     }>},
    {"refuses-hints",
     [](NetV12& table) {
       table.set_net_attr = [](void*, nccl::NetAttributes* attributes) {
         return attributes->send.max_concurrent_peers < 0 ? NetResult::invalid_argument
                                                          : NetResult::success;
       };
     }},
};

}  // namespace

std::span<const Mutant> device_mutants() { return kMutants; }

}  // namespace gdrx::mutants
