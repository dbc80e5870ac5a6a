// SPDX-License-Identifier: Apache-2.0
// Access Control Services: a bridge that redirects sends what one device below it writes to another
// up to the root complex first. Only root can read the register; IOMMU groups show its effect.
#include "doctor/checks/chains.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/checks/config_space.hpp"

namespace gdrx::doctor {
namespace {

constexpr std::uint16_t kAcs = 0x000d;
constexpr std::uint16_t kRedirect = 0x0004 | 0x0008 | 0x0010;  // request, completion, forwarding

bool must_keep_acs(const HostFacts& facts) {
  if (facts.topology.parts().in_vm) return true;
  for (const topo::Nic& nic : facts.topology.nics()) {
    if (nic.dma_node != topo::kNone) return true;  // Data Direct
  }
  for (const topo::Gpu& gpu : facts.topology.gpus()) {
    if (gpu.c2c_links > 0) return true;
  }
  return false;
}

struct Seen {
  std::string redirecting;
  int with = 0;    // bridges that have the capability
  int read = 0;    // bridges whose extended space could be read
  int hidden = 0;  // bridges whose could not
};

Seen read_bridges(const HostFacts& facts) {
  Seen seen;
  for (const std::size_t bridge : relevant_bridges(facts)) {
    const std::string& bus = facts.topology.nodes()[bridge].name;
    const ConfigSpace space = ConfigSpace::read(facts.files, bus);
    if (!space.has_extended()) {
      ++seen.hidden;
      continue;
    }
    ++seen.read;
    const auto at = space.find_extended(kAcs);
    if (!at) continue;
    ++seen.with;
    const std::uint16_t control = space.word(*at + 6).value_or(0);
    if ((control & kRedirect) != 0) seen.redirecting += fmt::format(" {}={:#06x}", bus, control);
  }
  return seen;
}

Lines switch_off() {
  return {"scripts/disable-acs.sh          # shows what it would do",
          "scripts/disable-acs.sh --apply",
          "# lost at a reboot: run it at each boot, or turn ACS off in the BIOS"};
}

// A GPU and a NIC below one switch: in one group, or apart because the switch redirects.
std::optional<Finding> infer(const HostFacts& facts) {
  for (const topo::Gpu& gpu : facts.topology.gpus()) {
    for (const topo::Nic& nic : facts.topology.nics()) {
      if (gpu.node == topo::kNone || nic.node == topo::kNone) continue;
      const auto& nodes = facts.topology.nodes();
      const int a = nodes[gpu.node].iommu_group;
      const int b = nodes[nic.node].iommu_group;
      const auto above = chain_above(facts.topology, gpu.node);
      const auto other = chain_above(facts.topology, nic.node);
      const bool one_switch = !above.empty() && !other.empty() && above.back() == other.back();
      if (!one_switch || a < 0 || b < 0) continue;
      const std::string evidence = fmt::format("iommu_group: {} in {}, {} in {}",
                                               nodes[gpu.node].name, a, nodes[nic.node].name, b);
      if (a == b) return ok("off between GPU and NIC: they share an IOMMU group", evidence);
      return finding(Severity::slow,
                     "on: GPU and NIC under one switch are in different IOMMU groups; traffic goes "
                     "through the root, or hangs",
                     evidence, switch_off());
    }
  }
  return std::nullopt;
}

}  // namespace

Findings check_acs(const HostFacts& facts) {
  if (relevant_bridges(facts).empty() || relevant_devices(facts).size() < 2) return {};
  const Seen seen = read_bridges(facts);
  const std::string evidence =
      fmt::format("config space: {} bridges read, {} with ACS, redirecting:{}", seen.read,
                  seen.with, seen.redirecting.empty() ? " none" : seen.redirecting);
  if (must_keep_acs(facts)) {
    return {ok("left as it is: virtual machines and Direct NIC platforms need ACS", evidence)};
  }
  if (!seen.redirecting.empty()) {
    return {finding(Severity::slow,
                    "on: bridges send traffic between GPU and NIC through the root, or it hangs",
                    evidence, switch_off())};
  }
  if (seen.hidden == 0) return {ok("off on every bridge above GPUs and NICs", evidence)};
  if (auto inferred = infer(facts)) return {*std::move(inferred)};
  return {finding(Severity::unknown, "only root can read it, and there are no IOMMU groups to tell",
                  fmt::format("config space: {} bridges show 64 bytes only", seen.hidden),
                  {"sudo gdrx doctor", "sudo lspci -vvv | grep -i acsctl"})};
}

}  // namespace gdrx::doctor
