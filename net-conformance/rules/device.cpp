// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <set>
#include <string>

#include "net-conformance/rules/common.hpp"

namespace gdrx::conformance {

namespace {

template <class Check>
Result<void> each_device(Session& session, Check check) {
  GDRX_TRY(ready(session));
  for (int device = 0; device < session.devices(); ++device) {
    Properties properties{};
    bool overrun = false;
    GDRX_TRY(succeeds(session.net().properties(device, &properties, &overrun), "getProperties"));
    GDRX_TRY(check(device, properties, overrun));
  }
  return {};
}

Result<void> count(Session& session) {
  GDRX_TRY(ready(session));
  for (int round = 0; round < 3; ++round) {
    int devices = 0;
    GDRX_TRY(succeeds(session.net().devices(&devices), "devices"));
    if (devices != session.devices()) {
      return broken(fmt::format("first {} devices, then {}", session.devices(), devices));
    }
  }
  return {};
}

Result<void> structure(Session& session) {
  return each_device(session, [](int, const Properties&, bool overrun) {
    return expect(!overrun, "getProperties writes beyond the structure of its version");
  });
}

Result<void> names(Session& session) {
  std::set<std::string> seen;
  return each_device(session, [&](int device, const Properties& properties, bool) -> Result<void> {
    if (properties.name == nullptr || properties.name[0] == '\0') {
      return broken(fmt::format("device {} has no name", device));
    }
    if (!seen.insert(properties.name).second) {
      return broken(fmt::format("two devices are called {}", properties.name));
    }
    return {};
  });
}

Result<void> pointers(Session& session) {
  constexpr int kKnown = nccl::kPtrHost | nccl::kPtrCuda | nccl::kPtrDmaBuf;
  const bool can_dma_buf = prepared(session.load()) && session.net().has(Optional::reg_mr_dma_buf);
  return each_device(session, [&](int, const Properties& properties, bool) -> Result<void> {
    const int support = properties.ptr_support;
    GDRX_TRY(expect((support & nccl::kPtrHost) != 0, "ptrSupport lacks the bit of host memory"));
    GDRX_TRY(expect((support & ~kKnown) == 0, "ptrSupport has bits that NCCL does not know"));
    return expect((support & nccl::kPtrDmaBuf) == 0 || can_dma_buf,
                  "ptrSupport claims dma-buf, and regMrDmaBuf is null");
  });
}

Result<void> limits(Session& session) {
  return each_device(session, [](int, const Properties& properties, bool) -> Result<void> {
    GDRX_TRY(expect(properties.max_comms > 0, "maxComms is not positive"));
    GDRX_TRY(expect(properties.max_recvs >= 1, "maxRecvs is under 1"));
    return expect(properties.speed > 0, "the speed is not positive");
  });
}

Result<void> latency(Session& session) {
  return each_device(session, [](int, const Properties& properties, bool) {
    return expect(std::isfinite(properties.latency) && properties.latency >= 0,
                  "the latency is negative or not a number");
  });
}

Result<void> largest(Session& session) {
  return each_device(session, [](int, const Properties& properties, bool) -> Result<void> {
    if (properties.max_p2p_bytes == 0 || properties.max_p2p_bytes > nccl::kMaxNetSize) {
      return broken(fmt::format("maxP2pBytes is {}", properties.max_p2p_bytes));
    }
    return {};
  });
}

Result<void> offload(Session& session) {
  constexpr int kUnpackVersion = 7;
  return each_device(session, [](int, const Properties& properties, bool) {
    const int type = properties.net_device_type;
    return expect(type == nccl::kDeviceHost || (type == nccl::kDeviceUnpack &&
                                                properties.net_device_version == kUnpackVersion),
                  "netDeviceType is neither HOST nor UNPACK of version 7");
  });
}

Result<void> parts(Session& session) {
  return each_device(session, [&](int, const Properties& properties, bool) -> Result<void> {
    const int most =
        session.net().version() >= 12 ? nccl::kMaxDevicesPerNicV12 : nccl::kMaxDevicesPerNicV9;
    const auto& virtual_device = properties.v_props;
    if (virtual_device.ndevs < 1 || virtual_device.ndevs > most) {
      return broken(fmt::format("vProps.ndevs is {}", virtual_device.ndevs));
    }
    for (int i = 0; i < virtual_device.ndevs; ++i) {
      if (virtual_device.devs[i] < 0 || virtual_device.devs[i] >= session.devices()) {
        return broken(fmt::format("vProps names device {}", virtual_device.devs[i]));
      }
    }
    return {};
  });
}

Result<void> stable(Session& session) {
  return each_device(session, [&](int device, const Properties& first, bool) -> Result<void> {
    Properties second{};
    bool overrun = false;
    GDRX_TRY(succeeds(session.net().properties(device, &second, &overrun), "getProperties"));
    const bool same = first.name != nullptr && second.name != nullptr &&
                      std::strcmp(first.name, second.name) == 0 && first.guid == second.guid &&
                      first.ptr_support == second.ptr_support && first.speed == second.speed &&
                      first.max_recvs == second.max_recvs &&
                      first.reg_is_global == second.reg_is_global;
    return expect(same, "getProperties says something else when it is called again");
  });
}

Result<void> attributes(Session& session) {
  GDRX_TRY(ready(session));
  if (!session.net().has(Optional::set_net_attr)) {
    return skipped("no setNetAttr");
  }
  nccl::NetAttributes undefined;
  std::memset(&undefined, 0xff, sizeof undefined);  // -1 everywhere
  GDRX_TRY(succeeds(session.net().set_net_attr(session.context(), &undefined),
                    "setNetAttr with everything undefined"));
  nccl::NetAttributes hints{{7, 1, 2, 1}, {7, 1, 2, 1}, 1U << 4, 1U << 1, 1U << 2};
  return succeeds(session.net().set_net_attr(session.context(), &hints), "setNetAttr");
}

Result<void> merged(Session& session) {
  constexpr std::size_t kSize = 1'000'003;
  GDRX_TRY(ready(session));
  if (session.devices() < 2 || !session.net().has(Optional::make_v_device)) {
    return skipped("no two devices, or no makeVDevice");
  }
  nccl::VDevicePropsV12 parts{};
  parts.ndevs = 2;
  parts.devs[1] = 1;
  int device = -1;
  if (session.net().make_v_device(&device, parts) != NetResult::success) {
    return skipped("these two are not merged");
  }
  int devices = 0;
  GDRX_TRY(succeeds(session.net().devices(&devices), "devices"));
  if (devices != session.devices() || device < devices) {
    return broken(fmt::format("of {} devices, then {}, the merged one is {}", session.devices(),
                              devices, device));
  }
  Properties properties{};
  bool overrun = false;
  GDRX_TRY(succeeds(session.net().properties(device, &properties, &overrun), "getProperties"));
  GDRX_TRY(expect(properties.v_props.ndevs == 2 && properties.v_props.devs[0] == 0 &&
                      properties.v_props.devs[1] == 1,
                  "vProps of the merged device does not name its parts"));
  GDRX_TRY(expect(std::string(properties.name) != session.properties().name,
                  "the merged device is called like its first part"));
  session.use_device(device);
  Wired wired = GDRX_TRY(Wired::open(session, kSize, kSize));
  return carries(session, wired);
}

constexpr Severity kMust = Severity::must;
constexpr const char* kInit = "load.init";

constexpr Rule kRules[] = {
    {"device.count", kMust, "devices says the same number each time",
     "asks again when communicators exchange it, and ranks no longer agree on the devices", kInit,
     count},
    {"device.structure", kMust, "getProperties fills the structure of its version and no more",
     "has the structure on its stack", kInit, structure},
    {"device.names", kMust, "each device has a name, and no two the same",
     "keys its topology by the name: two devices become one", kInit, names},
    {"device.pointers", kMust, "ptrSupport says host memory, and dma-buf only with regMrDmaBuf",
     "cannot send from its host buffers, or calls a null pointer", kInit, pointers},
    {"device.limits", kMust, "speed, maxComms and maxRecvs are positive",
     "finds no path over a device without speed, and posts groups of maxRecvs receives", kInit,
     limits},
    {"device.latency", kMust, "the latency is a number and not negative",
     "adds it to its cost model, which then chooses nonsense", kInit, latency},
    {"device.largest-message", kMust, "maxP2pBytes is in 1 to 2^40", "fails to set up a connection",
     kInit, largest},
    {"device.offload", kMust, "the device type is HOST, or UNPACK of version 7",
     "refuses the plugin", kInit, offload},
    {"device.parts", kMust, "vProps names 1 to 4 (v12: 8) devices that there are",
     "reads beyond the array", kInit, parts},
    {"device.stable", kMust, "getProperties says the same each time",
     "builds its topology from one answer and its connections from another", kInit, stable},
    {"device.merged", kMust, "makeVDevice makes one more device of two, over which messages go",
     "merges the ports of a NIC, and then knows no other device", kInit, merged},
    {"device.hints", kMust, "setNetAttr takes hints, undefined ones too",
     "calls it before connecting and treats an error as fatal", kInit, attributes},
};

}  // namespace

std::span<const Rule> device_rules() { return kRules; }

}  // namespace gdrx::conformance
