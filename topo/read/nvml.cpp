// SPDX-License-Identifier: Apache-2.0
// NVLinks by NVML, loaded at run time: a machine without a driver neither needs nor misses it.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "topo/read/sysfs.hpp"

namespace gdrx::topo {
namespace {

// The parts of NVML's stable C ABI that are used here.
struct NvmlPci {
  std::array<char, 16> legacy;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  std::array<char, 32> bus_id;
};
static_assert(sizeof(NvmlPci) == 68);
using NvmlDevice = void*;
constexpr int kSuccess = 0;
constexpr unsigned kMaxLinks = 18;  // Hopper's and Blackwell's

struct Close {
  void operator()(void* library) const { dlclose(library); }
};

class Nvml {
 public:
  static std::unique_ptr<Nvml> load() {
    std::unique_ptr<void, Close> library(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
    if (!library) return nullptr;
    auto nvml = std::make_unique<Nvml>();
    const auto get = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library.get(), name));
      return function != nullptr;
    };
    const bool whole = get(nvml->init, "nvmlInit_v2") && get(nvml->shutdown, "nvmlShutdown") &&
                       get(nvml->count, "nvmlDeviceGetCount_v2") &&
                       get(nvml->handle, "nvmlDeviceGetHandleByIndex_v2") &&
                       get(nvml->pci, "nvmlDeviceGetPciInfo_v3") &&
                       get(nvml->name, "nvmlDeviceGetName") &&
                       get(nvml->link_state, "nvmlDeviceGetNvLinkState") &&
                       get(nvml->link_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    nvml->library_ = std::move(library);
    return whole && nvml->init() == kSuccess ? std::move(nvml) : nullptr;
  }
  ~Nvml() {
    if (shutdown) shutdown();
  }

  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, NvmlDevice*) = nullptr;
  int (*pci)(NvmlDevice, NvmlPci*) = nullptr;
  int (*name)(NvmlDevice, char*, unsigned) = nullptr;
  int (*link_state)(NvmlDevice, unsigned, unsigned*) = nullptr;
  int (*link_remote)(NvmlDevice, unsigned, NvmlPci*) = nullptr;

 private:
  std::unique_ptr<void, Close> library_;
};

BusId bus_of(const NvmlPci& pci) {
  return {pci.domain, static_cast<std::uint8_t>(pci.bus), static_cast<std::uint8_t>(pci.device), 0};
}

std::size_t node_at(const Parts& parts, const BusId& bus) {
  const auto found = std::find_if(parts.nodes.begin(), parts.nodes.end(),
                                  [&](const PciNode& node) { return node.bus == bus; });
  return found == parts.nodes.end() ? kNone : static_cast<std::size_t>(found - parts.nodes.begin());
}

void add_links(const Nvml& nvml, NvmlDevice device, std::size_t node, Parts& parts) {
  std::map<std::size_t, int> to;  // kNone: NVSwitches
  for (unsigned link = 0; link < kMaxLinks; ++link) {
    unsigned active = 0;
    NvmlPci remote{};
    if (nvml.link_state(device, link, &active) != kSuccess || active == 0) continue;
    if (nvml.link_remote(device, link, &remote) != kSuccess) continue;
    // A remote end that is none of this host's GPUs is an NVSwitch, also when a VM hides it.
    const std::size_t peer = node_at(parts, bus_of(remote));
    const bool is_gpu = std::any_of(parts.gpus.begin(), parts.gpus.end(), [&](const Gpu& gpu) {
      return peer != kNone && gpu.node == peer;
    });
    ++to[is_gpu ? peer : kNone];
  }
  for (const auto& [peer, count] : to) parts.nvlinks.push_back({node, peer, count, 0});
}

}  // namespace

void add_nvml(Parts& parts) {
  if (parts.gpus.empty()) return;
  const auto nvml = Nvml::load();
  unsigned count = 0;
  if (!nvml || nvml->count(&count) != kSuccess) {
    parts.notes.push_back("libnvidia-ml.so.1 is not usable: NVLinks are not known");
    return;
  }
  parts.nvlink_known = true;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    NvmlPci pci{};
    if (nvml->handle(i, &device) != kSuccess || nvml->pci(device, &pci) != kSuccess) continue;
    const std::size_t node = node_at(parts, bus_of(pci));
    if (node == kNone) continue;
    std::array<char, 96> name{};
    for (Gpu& gpu : parts.gpus) {
      if (gpu.node == node && nvml->name(device, name.data(), name.size()) == kSuccess) {
        gpu.model = name.data();
      }
    }
    add_links(*nvml, device, node, parts);
  }
}

}  // namespace gdrx::topo
