// SPDX-License-Identifier: Apache-2.0
// Where GPUs and NICs sit, and what their links were trained to.
#include <algorithm>
#include <set>

#include "doctor/checks/chains.hpp"
#include "doctor/checks/checks.hpp"
#include "topo/model/pci_vendor.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::doctor {
namespace {

std::filesystem::path device_folder(const std::string& bus) {
  return std::filesystem::path("sys/bus/pci/devices") / bus;
}

Finding judge_link(const HostFacts& facts, const topo::PciNode& node) {
  const auto folder = device_folder(node.name);
  const auto number = [&](const char* file) {
    return topo::leading_number(facts.files.read(folder / file));
  };
  const double width = number("current_link_width");
  const double most = number("max_link_width");
  const double speed = number("current_link_speed");
  const double fastest = number("max_link_speed");
  const std::string evidence = fmt::format("{}: x{:.0f} of x{:.0f}, {} of {} GT/s", folder.string(),
                                           width, most, speed, fastest);
  const Lines look{command("lspci -s {} -vv | grep -i lnk", node.name)};
  if (width <= 0 || most <= 0 || most > 32) {
    return finding(Severity::unknown, "the link's state is not shown", evidence, look);
  }
  if (width < most) {
    Lines fix = look;
    fix.push_back("# reseat the card; look at riser, slot (bifurcation) and BIOS");
    return finding(Severity::slow, fmt::format("trained to x{:.0f}, can x{:.0f}", width, most),
                   evidence, fix);
  }
  // A GPU lowers the rate of its link, and of the port above, while it has nothing to do.
  const bool gpu = topo::is_gpu_class(node.class_code, node.vendor);
  if (speed < fastest && node.kind == topo::NodeKind::device && !gpu) {
    Lines fix = look;
    fix.push_back("# BIOS: set the slot's link speed to Auto or the highest");
    return finding(Severity::slow, fmt::format("trained to {} GT/s, can {}", speed, fastest),
                   evidence, fix);
  }
  return ok(
      fmt::format("x{:.0f}, {} GT/s{}", width, speed, speed < fastest ? " (lower while idle)" : ""),
      evidence);
}

}  // namespace

std::vector<std::size_t> chain_above(const topo::Topology& topology, std::size_t node) {
  std::vector<std::size_t> chain;
  while (node != topo::kNone) {
    node = topology.nodes()[node].parent;
    if (node == topo::kNone || topology.nodes()[node].kind == topo::NodeKind::root) break;
    chain.push_back(node);
  }
  return chain;
}

std::vector<std::size_t> relevant_devices(const HostFacts& facts) {
  std::set<std::size_t> nodes;
  for (const topo::Gpu& gpu : facts.topology.gpus()) {
    if (gpu.node != topo::kNone &&
        facts.topology.nodes()[gpu.node].vendor == topo::vendor::kNvidia) {
      nodes.insert(gpu.node);
    }
  }
  for (const topo::Nic& nic : facts.topology.nics()) {
    if (nic.node != topo::kNone) nodes.insert(nic.node);
  }
  return {nodes.begin(), nodes.end()};
}

std::vector<std::size_t> relevant_bridges(const HostFacts& facts) {
  std::set<std::size_t> bridges;
  for (const std::size_t device : relevant_devices(facts)) {
    for (const std::size_t bridge : chain_above(facts.topology, device)) bridges.insert(bridge);
  }
  return {bridges.begin(), bridges.end()};
}

Findings check_gpu_nic_distance(const HostFacts& facts) {
  Findings found;
  const topo::RailMap map = rail_map(facts.topology);
  for (std::size_t gpu = 0; gpu < map.of_gpu.size(); ++gpu) {
    if (map.of_gpu[gpu].empty()) continue;
    const topo::RailChoice& choice = map.of_gpu[gpu].front();
    const topo::Nic& nic = facts.topology.nics()[choice.nic];
    const std::string word = topo::cell(choice.path, true);
    const std::string evidence =
        fmt::format("gdrx topo: {} to {}: {}; NCCL: {}", facts.topology.gpus()[gpu].name, nic.name,
                    word, topo::to_string(choice.path.nccl));
    const Lines move{"gdrx topo --map", "# move the card to a slot under the GPU's switch"};
    const auto add = [&](Finding one) {
      found.push_back(about(facts.topology.gpus()[gpu].name, std::move(one)));
    };
    if (choice.path.nccl == topo::NcclClass::p2c) {
      add(ok(fmt::format("{} is near by NVLink-C2C ({})", nic.name, word), evidence));
      continue;
    }
    const bool by_host = choice.path.near >= topo::PathClass::phb;
    if (facts.topology.flattened() || (facts.topology.hides_switches() && by_host)) {
      add(finding(Severity::unknown,
                  fmt::format("how near {} is cannot be seen: no PCIe switch is shown", nic.name),
                  evidence,
                  {"# measure it:", command("gdrx perf -d {} --use_cuda {}", nic.name, gpu)}));
      continue;
    }
    switch (choice.path.near) {
      case topo::PathClass::self:
      case topo::PathClass::nvlink:
      case topo::PathClass::pix:
      case topo::PathClass::pxb:
        add(ok(fmt::format("{} is near ({})", nic.name, word), evidence));
        break;
      case topo::PathClass::phb:
        add(finding(
            Severity::warn,
            fmt::format("{} is behind the host bridge (PHB): NCCL leaves GDR off", nic.name),
            evidence,
            {"# measure it both ways; only if it wins:", "export NCCL_NET_GDR_LEVEL=PHB"}));
        break;
      case topo::PathClass::node:
        add(finding(Severity::slow,
                    fmt::format("{} is at another host bridge (NODE): slow, or NCCL stages through "
                                "host memory",
                                nic.name),
                    evidence, move));
        break;
      case topo::PathClass::sys:
        add(finding(
            Severity::slow,
            fmt::format("{} is at another socket (SYS): 0.3 to 6 GB/s were measured", nic.name),
            evidence, move));
        break;
      case topo::PathClass::unknown:
        add(finding(
            Severity::unknown, fmt::format("how near {} is cannot be seen", nic.name), evidence,
            {command("gdrx topo --explain {} {}", facts.topology.gpus()[gpu].name, nic.name)}));
        break;
    }
  }
  return found;
}

Findings check_pcie_link(const HostFacts& facts) {
  Findings found;
  for (const std::size_t node : relevant_devices(facts)) {
    const topo::PciNode& one = facts.topology.nodes()[node];
    found.push_back(about(one.name, judge_link(facts, one)));
  }
  return found;
}

Findings check_pcie_errors(const HostFacts& facts) {
  Findings found;
  for (const std::size_t node : relevant_devices(facts)) {
    const std::string& bus = facts.topology.nodes()[node].name;
    std::string evidence;
    double total = 0;
    bool seen = false;
    for (const char* kind : {"correctable", "nonfatal", "fatal"}) {
      const auto path = device_folder(bus) / fmt::format("aer_dev_{}", kind);
      const std::string text = facts.files.read(path);
      const auto at = text.rfind("TOTAL_ERR_");
      if (at == text.npos) continue;
      seen = true;
      const auto space = text.find(' ', at);
      const double count = space == text.npos ? 0 : topo::leading_number(text.substr(space + 1));
      total += count;
      evidence +=
          fmt::format("{}{} {:.0f}", evidence.empty() ? "" : ", ", path.filename().string(), count);
    }
    if (!seen) continue;
    found.push_back(
        about(bus, total == 0 ? ok("none", evidence)
                              : finding(Severity::warn,
                                        "the link has had errors: replays cost bandwidth", evidence,
                                        {"dmesg | grep -i aer | tail",
                                         "# reseat the card; look at riser and slot"})));
  }
  return found;
}

Findings check_virtual_machine(const HostFacts& facts) {
  if (relevant_devices(facts).empty()) return {};
  const bool hidden = facts.topology.flattened() || facts.topology.hides_switches();
  if (!facts.topology.parts().in_vm && !hidden) {
    return {ok("no hypervisor", "proc/cpuinfo: no flag 'hypervisor'; no bridge of QEMU")};
  }
  if (!hidden) {
    return {ok("a virtual machine that shows its PCIe switches", "proc/cpuinfo: hypervisor")};
  }
  return {finding(Severity::warn,
                  facts.topology.flattened()
                      ? "a virtual machine with a flat PCI tree: how near a NIC is cannot be seen, "
                        "and NCCL guesses"
                      : "a virtual machine that hides its PCIe switches: of how near a NIC is the "
                        "NUMA node is all that can be seen",
                  "proc/cpuinfo: hypervisor; no bridge above the GPUs",
                  {"# the cloud's file, or one written from the machine type:",
                   "export NCCL_TOPO_FILE=/path/to/topology.xml",
                   "gdrx topo --format nccl-xml  # what is known, as a start"})};
}

Findings check_numa_known(const HostFacts& facts) {
  if (facts.topology.numa().size() < 2) return {};
  Findings found;
  for (const std::size_t node : relevant_devices(facts)) {
    const topo::PciNode& one = facts.topology.nodes()[node];
    const int numa = facts.topology.numa_of(node);
    const std::string evidence =
        fmt::format("{}/numa_node: {}", device_folder(one.name).string(), numa);
    found.push_back(about(
        one.name,
        numa >= 0 ? ok(fmt::format("node {}", numa), evidence)
                  : finding(Severity::warn,
                            "the firmware does not say the NUMA node: buffers and threads "
                            "go anywhere",
                            evidence,
                            {"# BIOS update; until then, as root:",
                             command("echo 0 > {}",
                                     "/" + (device_folder(one.name) / "numa_node").string())})));
  }
  return found;
}

}  // namespace gdrx::doctor
