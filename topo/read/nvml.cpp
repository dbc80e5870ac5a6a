// SPDX-License-Identifier: Apache-2.0
// Links by NVML, loaded at run time: a machine without a driver neither needs nor misses it.
#include "topo/read/nvml.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "base/system_library.hpp"
#include "topo/model/pci_vendor.hpp"
#include "topo/read/sysfs.hpp"

namespace gdrx::topo {
namespace {

// Loaded and initialised, until it goes out of scope.
class Nvml {
 public:
  Nvml() : library_(SystemLibrary::open({"libnvidia-ml.so.1"})) {
    int (*init)() = nullptr;
    const bool whole = library_.take({
        {table.capability, "nvmlDeviceGetCudaComputeCapability", Symbol::Need::newer},
        {table.fields, "nvmlDeviceGetFieldValues", Symbol::Need::newer},
        {table.count, "nvmlDeviceGetCount_v2"},
        {table.handle, "nvmlDeviceGetHandleByIndex_v2"},
        {table.pci, "nvmlDeviceGetPciInfo_v3"},
        {table.name, "nvmlDeviceGetName"},
        {table.link_state, "nvmlDeviceGetNvLinkState"},
        {table.link_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2"},
        {init, "nvmlInit_v2"},
        {shutdown_, "nvmlShutdown", Symbol::Need::newer},
    });
    usable_ = whole && init() == kNvmlSuccess;
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (usable_ && shutdown_) shutdown_();
  }
  bool usable() const noexcept { return usable_; }

  NvmlTable table;

 private:
  SystemLibrary library_;
  int (*shutdown_)() = nullptr;
  bool usable_ = false;
};

BusId bus_of(const NvmlPci& pci) {
  return {pci.domain, static_cast<std::uint8_t>(pci.bus), static_cast<std::uint8_t>(pci.device), 0};
}

std::size_t node_at(const Parts& parts, const BusId& bus) {
  const auto found = std::find_if(parts.nodes.begin(), parts.nodes.end(),
                                  [&](const PciNode& node) { return node.bus == bus; });
  return found == parts.nodes.end() ? kNone : static_cast<std::size_t>(found - parts.nodes.begin());
}

void add_nvlinks(const NvmlTable& nvml, NvmlDevice device, std::size_t node, Parts& parts) {
  std::map<std::size_t, int> to;  // kNone: NVSwitches
  for (unsigned link = 0; link < kMostNvLinks; ++link) {
    unsigned active = 0;
    NvmlPci remote{};
    if (nvml.link_state(device, link, &active) != kNvmlSuccess || active == 0) continue;
    if (nvml.link_remote(device, link, &remote) != kNvmlSuccess) continue;
    // A remote end that is none of this host's GPUs is an NVSwitch, also when a VM hides it.
    const std::size_t peer = node_at(parts, bus_of(remote));
    if (peer != kNone && parts.nodes[peer].vendor == vendor::kIbm) continue;  // a POWER9 CPU
    const bool is_gpu = std::any_of(parts.gpus.begin(), parts.gpus.end(), [&](const Gpu& gpu) {
      return peer != kNone && gpu.node == peer;
    });
    ++to[is_gpu ? peer : kNone];
  }
  for (const auto& [peer, count] : to) parts.nvlinks.push_back({node, peer, count, 0});
}

std::optional<unsigned> field(const NvmlTable& nvml, NvmlDevice device, unsigned id,
                              unsigned link) {
  NvmlField asked;
  asked.field = id;
  asked.scope = link;
  if (!nvml.fields || nvml.fields(device, 1, &asked) != kNvmlSuccess) return std::nullopt;
  if (asked.status != kNvmlSuccess) return std::nullopt;
  return static_cast<unsigned>(asked.value);
}

// NVLink-C2C to the CPU, as on Grace. Links that are there and down do not count.
void add_c2c(const NvmlTable& nvml, NvmlDevice device, Gpu& gpu) {
  const unsigned links = std::min(field(nvml, device, kC2cCount, 0).value_or(0), kMostC2cLinks);
  for (unsigned link = 0; link < links; ++link) {
    if (field(nvml, device, kC2cStatus, link) != 1u) continue;
    ++gpu.c2c_links;
    gpu.c2c_gbytes += field(nvml, device, kC2cBandwidth, link).value_or(0) / 1000.0;
  }
}

void add_gpu(const NvmlTable& nvml, NvmlDevice device, Gpu& gpu) {
  std::array<char, 96> name{};
  if (nvml.name(device, name.data(), name.size()) == kNvmlSuccess) {
    name.back() = '\0';
    gpu.model = name.data();
  }
  int major = 0;
  int minor = 0;
  if (nvml.capability && nvml.capability(device, &major, &minor) == kNvmlSuccess) {
    gpu.sm = 10 * major + minor;
  }
  add_c2c(nvml, device, gpu);
}

}  // namespace

void add_nvml(const NvmlTable& nvml, Parts& parts) {
  unsigned count = 0;
  if (nvml.count(&count) != kNvmlSuccess) {
    parts.notes.push_back("NVML gives no GPUs: NVLinks are not known");
    return;
  }
  parts.nvlink_known = true;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    NvmlPci pci{};
    if (nvml.handle(i, &device) != kNvmlSuccess || nvml.pci(device, &pci) != kNvmlSuccess) continue;
    const std::size_t node = node_at(parts, bus_of(pci));
    const auto gpu = std::find_if(parts.gpus.begin(), parts.gpus.end(),
                                  [&](const Gpu& one) { return one.node == node; });
    if (node == kNone || gpu == parts.gpus.end()) continue;
    add_gpu(nvml, device, *gpu);
    add_nvlinks(nvml, device, node, parts);
  }
}

void add_nvml(Parts& parts) {
  if (parts.gpus.empty()) return;
  if (const Nvml nvml; nvml.usable()) return add_nvml(nvml.table, parts);
  parts.notes.push_back("libnvidia-ml.so.1 is not usable: NVLinks are not known");
}

}  // namespace gdrx::topo
