// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/wire.hpp"

#include <infiniband/verbs.h>

#include <algorithm>

namespace gdrx::verbs {
namespace {

bool usable(const RailAddress& rail) {
  return rail.mtu >= IBV_MTU_256 && rail.mtu <= IBV_MTU_4096 && rail.control_qp < 1U << 24 &&
         std::find(rail.name.begin(), rail.name.end(), '\0') != rail.name.end();
}

}  // namespace

Result<DeviceAddress> decode_address(std::span<const std::byte> bytes) {
  const auto address = GDRX_TRY(decode<DeviceAddress>(bytes));
  if (address.version != kWireVersion) return fail(Errc::protocol, "it is of another version");
  if (address.rails == 0 || address.rails > kMaxRails || address.qps == 0 ||
      address.qps > kMaxQps) {
    return fail(Errc::protocol, "its number of rails or of QPs is impossible");
  }
  if (!std::all_of(address.rail.begin(), address.rail.begin() + address.rails, usable)) {
    return fail(Errc::protocol, "a rail of it is impossible");
  }
  return address;
}

Result<Control> decode_control(std::span<const std::byte> bytes) {
  const auto control = GDRX_TRY(decode<Control>(bytes));
  if (control.version != kWireVersion) return fail(Errc::protocol, "it is of another version");
  if (control.kind < ControlKind::hello || control.kind > ControlKind::pong) {
    return fail(Errc::protocol, "it is of no known kind");
  }
  if (control.pair >= kMaxRails || control.rails == 0 || control.rails > kMaxRails ||
      control.qps == 0 || control.qps > kMaxQps || control.rank < 0 || !usable(control.rail)) {
    return fail(Errc::protocol, "a number of it is impossible");
  }
  return control;
}

}  // namespace gdrx::verbs
