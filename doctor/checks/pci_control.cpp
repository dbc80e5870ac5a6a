// SPDX-License-Identifier: Apache-2.0
// IOMMU, and what NICs are allowed on PCIe.
#include <set>

#include "doctor/checks/chains.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/checks/config_space.hpp"

namespace gdrx::doctor {
namespace {

constexpr std::uint8_t kPciExpress = 0x10;
constexpr std::uint16_t kAts = 0x000f;

// For each NIC on the bus: its config space, judged; UNKNOWN where only root can read it.
template <class Judge>
Findings each_nic(const HostFacts& facts, Judge judge) {
  Findings found;
  for (const topo::Nic& nic : facts.topology.nics()) {
    const std::string bus = nic_bus(facts, nic);
    if (bus.empty()) continue;
    const ConfigSpace space = ConfigSpace::read(facts.files, bus);
    const auto express = space.find(kPciExpress);
    found.push_back(
        about(nic.name, express && space.has_capabilities()
                            ? judge(bus, space, space.word(*express + 8).value_or(0))
                            : finding(Severity::unknown, "only root can read it",
                                      fmt::format("sys/bus/pci/devices/{}/config: 64 bytes", bus),
                                      {command("sudo lspci -vvv -s {}", bus)})));
  }
  return found;
}

}  // namespace

Findings check_iommu(const HostFacts& facts) {
  if (relevant_devices(facts).empty()) return {};
  if (facts.files.list("sys/class/iommu").empty()) return {ok("off", "sys/class/iommu: empty")};
  std::string translating;
  bool seen = false;
  std::set<int> groups;
  for (const std::size_t node : relevant_devices(facts)) {
    groups.insert(facts.topology.nodes()[node].iommu_group);
  }
  std::string evidence;
  for (const int group : groups) {
    const std::string path = fmt::format("sys/kernel/iommu_groups/{}/type", group);
    const std::string type = facts.files.read(path);
    if (group < 0 || type.empty()) continue;
    seen = true;
    evidence += fmt::format("{}{}: {}", evidence.empty() ? "" : "; ", path, type);
    if (type != "identity") translating += " " + type;
  }
  if (!seen) {
    return {finding(Severity::unknown, "the groups' types cannot be read",
                    "sys/kernel/iommu_groups/*/type: not there",
                    {"cat /proc/cmdline", "dmesg | grep -i 'iommu: default domain'"})};
  }
  if (translating.empty()) return {ok("passes addresses through", evidence)};
  if (facts.topology.parts().in_vm) {
    return {finding(Severity::warn, "translates inside the virtual machine", evidence,
                    kernel_argument_lines(facts.distribution, "iommu=pt"))};
  }
  return {finding(Severity::slow, "translates each address: slow, and GDR may hang", evidence,
                  kernel_argument_lines(facts.distribution, "iommu=pt"))};
}

Findings check_ats(const HostFacts& facts) {
  // Bare metal with pass-through needs no translation.
  if (!facts.topology.parts().in_vm) return {};
  return each_nic(facts, [](const std::string& bus, const ConfigSpace& space, std::uint16_t) {
    const auto at = space.find_extended(kAts);
    if (!at) {
      return finding(Severity::warn, "the NIC shows no ATS: peer traffic goes by the root complex",
                     "config space of " + bus + ": no capability 0x000f",
                     {"# on the host, then a cold reboot:",
                      command("mlxconfig -d {} set ATS_ENABLED=1", bus)});
    }
    const std::uint16_t control = space.word(*at + 6).value_or(0);
    const std::string evidence =
        fmt::format("config space of {}: ATS control {:#06x}", bus, control);
    if ((control & 0x8000) != 0) return ok("on", evidence);
    return finding(
        Severity::slow, "off: peer traffic in a virtual machine goes by the root complex", evidence,
        {"# on the host, then a cold reboot:", command("mlxconfig -d {} set ATS_ENABLED=1", bus)});
  });
}

Findings check_max_read_request(const HostFacts& facts) {
  return each_nic(facts, [](const std::string& bus, const ConfigSpace&, std::uint16_t control) {
    const int bytes = 128 << (control >> 12 & 7);
    const std::string evidence =
        fmt::format("config space of {}: device control {:#06x}", bus, control);
    if (bytes >= 512) return ok(fmt::format("{} bytes", bytes), evidence);
    return finding(Severity::slow, fmt::format("{} bytes: too little for a fast NIC", bytes),
                   evidence,
                   {command("setpci -s {} CAP_EXP+08.w=5000:7000", bus),
                    "# 4096 bytes until the next boot; for good: the BIOS"});
  });
}

Findings check_relaxed_ordering(const HostFacts& facts) {
  return each_nic(facts, [](const std::string& bus, const ConfigSpace&, std::uint16_t control) {
    const std::string evidence =
        fmt::format("config space of {}: device control {:#06x}", bus, control);
    if ((control & 0x0010) != 0) return ok("allowed", evidence);
    return finding(Severity::warn, "not allowed: some CPUs and all virtual machines lose bandwidth",
                   evidence,
                   {command("setpci -s {} CAP_EXP+08.w=0010:0010", bus),
                    "# until the next boot; for good: BIOS, PCIe relaxed ordering"});
  });
}

}  // namespace gdrx::doctor
