// SPDX-License-Identifier: Apache-2.0
#include "doctor/host_facts.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/size_text.hpp"
#include "topo/model/pci_vendor.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::doctor {
namespace {

namespace fs = std::filesystem;

KernelVersion kernel_version(const std::string& release) {
  KernelVersion version;
  if (std::sscanf(release.c_str(), "%d.%d", &version.major, &version.minor) != 2) return {};
  return version;
}

// The interface of a RoCE port: from its GID table, where the kernel says it, else from the card.
std::string netdev_of(const topo::HostFiles& files, const fs::path& device, const fs::path& port) {
  const fs::path ndevs = port / "gid_attrs/ndevs";
  for (const std::string& index : files.list(ndevs)) {
    std::string name = files.read(ndevs / index);
    if (!name.empty()) return name;
  }
  const std::string parent = files.read(device / "parent");  // soft-RoCE
  if (!parent.empty()) return parent;
  const int wanted = topo::to_int(port.filename().string(), 1) - 1;
  const auto names = files.list(device / "device/net");
  for (const std::string& name : names) {
    const int number = topo::to_int(files.read(device / "device/net" / name / "dev_port"), 0);
    if (number == wanted) return name;
  }
  return names.size() == 1 ? names[0] : std::string();
}

std::vector<Port> ports_of(const topo::HostFiles& files, const topo::Topology& topology) {
  std::vector<Port> ports;
  for (const topo::Nic& nic : topology.nics()) {
    const fs::path device = fs::path("sys/class/infiniband") / nic.name;
    for (const std::string& number : files.list(device / "ports")) {
      Port port;
      port.nic = nic.name;
      port.number = number;
      port.folder = device / "ports" / number;
      port.ethernet = files.read(port.folder / "link_layer") == "Ethernet";
      port.is_virtual = nic.is_virtual;
      if (port.ethernet) port.netdev = netdev_of(files, device, port.folder);
      ports.push_back(std::move(port));
    }
  }
  return ports;
}

bool in_container(const HostFacts& facts) {
  const topo::HostFiles& files = facts.files;
  if (files.exists(".dockerenv") || files.exists("run/.containerenv")) return true;
  if (!variable(facts, "KUBERNETES_SERVICE_HOST").empty()) return true;
  if (!variable(facts, "container").empty()) return true;
  const std::string groups = files.read("proc/1/cgroup");
  constexpr std::array kWords{"docker", "kubepods", "containerd", "lxc", "libpod"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* word) { return groups.find(word) != groups.npos; });
}

// NVML writes eight digits of the domain, CUDA capital letters.
std::string plain_bus(const std::string& text) {
  const auto bus = topo::parse_bus_id(text);
  return bus ? topo::to_string(*bus) : text;
}

}  // namespace

Result<HostFacts> gather(const Host& host) {
  topo::Topology topology = GDRX_TRY(topo::discover({host.root, false, host.files}));
  const topo::HostFiles files =
      host.files ? topo::HostFiles(host.files) : topo::HostFiles(host.root);
  HostFacts facts{files,
                  host.probes,
                  std::move(topology),
                  parse_os_release(files.read("etc/os-release")),
                  host.probes.kernel_release(),
                  {},
                  {},
                  host.probes.cuda(),
                  host.probes.nvml(),
                  host.probes.verbs(),
                  host.probes.proofs(),
                  host.probes.capabilities().value_or(0),
                  false,
                  false};
  if (facts.cuda) {
    for (CudaDevice& one : facts.cuda->devices) one.bus = plain_bus(one.bus);
  }
  if (facts.nvml) {
    for (NvmlDevice& one : facts.nvml->devices) one.bus = plain_bus(one.bus);
  }
  facts.kernel = kernel_version(facts.release);
  facts.ports = ports_of(files, facts.topology);
  facts.in_container = in_container(facts);
  facts.has_nvidia_gpu = std::any_of(
      facts.topology.gpus().begin(), facts.topology.gpus().end(), [&](const topo::Gpu& gpu) {
        return gpu.node != topo::kNone &&
               facts.topology.nodes()[gpu.node].vendor == topo::vendor::kNvidia;
      });
  return facts;
}

std::string variable(const HostFacts& facts, std::string_view name) {
  for (const std::string& entry : facts.probes.environment()) {
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

std::string nic_bus(const HostFacts& facts, const topo::Nic& nic) {
  return nic.node == topo::kNone ? std::string() : facts.topology.nodes()[nic.node].name;
}

std::string bytes_text(std::uint64_t bytes) {
  return bytes == kUnlimited ? "unlimited" : size_text(bytes);
}

}  // namespace gdrx::doctor
