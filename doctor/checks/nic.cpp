// SPDX-License-Identifier: Apache-2.0
// RDMA devices: seen, reachable by programs, alike.
#include <cerrno>
#include <cstring>
#include <map>

#include "doctor/checks/checks.hpp"
#include "topo/model/pci_vendor.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::doctor {
namespace {

namespace fs = std::filesystem;

Lines device_lines(const HostFacts& facts) {
  if (facts.in_container) {
    return {"# give the container the nodes:",
            "docker run --device /dev/infiniband --cap-add IPC_LOCK ...",
            "# Kubernetes: ask for the resource of the RDMA device plugin, rdma/<name>: 1"};
  }
  return load_module_lines("ib_uverbs");
}

}  // namespace

Findings check_rdma_nic(const HostFacts& facts) {
  const auto& nics = facts.topology.nics();
  std::string names;
  bool real = false;
  for (const topo::Nic& nic : nics) {
    names += " " + nic.name;
    real |= !nic.is_virtual;
  }
  if (real) return {ok(fmt::format("{} seen", nics.size()), "sys/class/infiniband:" + names)};
  if (!nics.empty()) {
    return {finding(Severity::warn, "only soft-RoCE or the like: for trying out, no GPU memory",
                    "sys/class/infiniband:" + names, {"lspci -d ::0207", "lspci -d 15b3:"})};
  }
  bool mellanox = false;
  for (const topo::PciNode& node : facts.topology.nodes()) {
    mellanox |= node.vendor == topo::vendor::kMellanox && node.class_code >> 16 == 0x02;
  }
  if (mellanox) {
    Lines fix = load_module_lines("mlx5_ib");
    fix.insert(fix.begin(), install_line(facts.distribution, kVerbsPackage));
    return {finding(Severity::fail, "the card is on the bus, but its RDMA driver is not loaded",
                    "sys/class/infiniband: empty; a network function of vendor 0x15b3 is there",
                    fix)};
  }
  return {finding(Severity::fail, "no RDMA device: there is no NIC that could reach GPU memory",
                  "sys/class/infiniband: empty",
                  {"# is a card there at all?", "lspci -d ::0200 && lspci -d ::0207",
                   "# soft-RoCE for trying out (host memory only):",
                   "# modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0"})};
}

Findings check_libibverbs(const HostFacts& facts) {
  if (facts.topology.nics().empty()) return {};
  if (facts.verbs) {
    return {ok("loaded",
               fmt::format("dlopen(libibverbs.so.1): {} devices", facts.verbs->devices.size()))};
  }
  return {finding(facts.probes.libraries_asked ? Severity::fail : Severity::unknown,
                  facts.verbs.error().what, "dlopen(libibverbs.so.1): " + facts.verbs.error().what,
                  {install_line(facts.distribution, kVerbsPackage)})};
}

Findings check_uverbs_nodes(const HostFacts& facts) {
  Findings found;
  for (const std::string& node : facts.files.list("sys/class/infiniband_verbs")) {
    if (!node.starts_with("uverbs")) continue;
    const std::string nic =
        facts.files.read(fs::path("sys/class/infiniband_verbs") / node / "ibdev");
    const std::string path = "/dev/infiniband/" + node;
    const int error = facts.probes.open_errno(path);
    if (error == 0) {
      found.push_back(about(nic, ok(path, fmt::format("open({}): worked", path))));
    } else if (error == EACCES || error == EPERM) {
      found.push_back(about(nic, finding(Severity::fail, path + " may not be opened by this user",
                                         fmt::format("open({}): {}", path, std::strerror(error)),
                                         {command("chmod 0666 {}", path),
                                          "# containers: the device cgroup must allow it too:",
                                          "docker run --device /dev/infiniband ..."})));
    } else {
      found.push_back(about(nic, finding(Severity::fail, path + " is missing",
                                         fmt::format("open({}): {}", path, std::strerror(error)),
                                         device_lines(facts))));
    }
  }
  if (found.empty() && !facts.topology.nics().empty()) {
    return {finding(Severity::fail, "no verbs node at all: the module ib_uverbs is not loaded",
                    "sys/class/infiniband_verbs: empty", load_module_lines("ib_uverbs"))};
  }
  return found;
}

Findings check_rdma_cm(const HostFacts& facts) {
  if (facts.topology.nics().empty()) return {};
  constexpr const char* kPath = "/dev/infiniband/rdma_cm";
  const int error = facts.probes.open_errno(kPath);
  if (error == 0) return {ok(kPath, fmt::format("open({}): worked", kPath))};
  return {finding(Severity::warn, "no connection manager: programs that use rdma_cm will not start",
                  fmt::format("open({}): {}", kPath, std::strerror(error)),
                  facts.in_container ? Lines{"docker run --device /dev/infiniband ..."}
                                     : load_module_lines("rdma_ucm"))};
}

Findings check_rdma_netns(const HostFacts& facts) {
  constexpr const char* kMode = "sys/module/ib_core/parameters/netns_mode";
  const std::string mode = facts.files.read(kMode);
  if (mode.empty()) return {};
  const std::string evidence = fmt::format("{}: {}", kMode, mode);
  if (mode == "Y" || mode == "1") return {ok("shared: containers see all devices", evidence)};
  return {finding(
      Severity::warn, "exclusive: a device is seen in one network namespace only", evidence,
      {"rdma system set netns shared", "# or move the device: rdma dev set mlx5_0 netns NAME"})};
}

Findings check_nic_firmware(const HostFacts& facts) {
  std::map<std::string, std::map<std::string, std::string>> boards;  // board, version, devices
  for (const topo::Nic& nic : facts.topology.nics()) {
    const fs::path device = fs::path("sys/class/infiniband") / nic.name;
    const std::string board = facts.files.read(device / "board_id");
    const std::string version = facts.files.read(device / "fw_ver");
    if (!board.empty() && !version.empty()) boards[board][version] += " " + nic.name;
  }
  Findings found;
  for (const auto& [board, versions] : boards) {
    std::string evidence = "fw_ver:";
    for (const auto& [version, nics] : versions)
      evidence += fmt::format(" {} on{};", version, nics);
    evidence.pop_back();
    found.push_back(about(
        board,
        versions.size() == 1
            ? ok(versions.begin()->first, evidence)
            : finding(Severity::warn, "cards of one kind run different firmware", evidence,
                      {"mlxfwmanager --query", "mlxfwmanager --online -u", "# then reboot"})));
  }
  return found;
}

}  // namespace gdrx::doctor
