// SPDX-License-Identifier: Apache-2.0
// CPUs and pages.
#include <algorithm>
#include <map>

#include "base/cpu_list.hpp"
#include "doctor/checks/chains.hpp"
#include "doctor/checks/checks.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::doctor {
Findings check_numa_balancing(const HostFacts& facts) {
  constexpr const char* kPath = "proc/sys/kernel/numa_balancing";
  const std::string text = facts.files.read(kPath);
  if (text.empty()) return {};
  const std::string evidence = fmt::format("{}: {}", kPath, text);
  if (text == "0") return {ok("off", evidence)};
  if (facts.topology.numa().size() < 2) return {ok("one NUMA node: does not matter", evidence)};
  return {finding(Severity::warn, "on: the kernel unmaps pages to watch them, latency jumps",
                  evidence, sysctl_lines("kernel.numa_balancing", "0"))};
}

Findings check_cpu_affinity(const HostFacts& facts) {
  const std::string affinity = facts.probes.affinity();
  if (affinity.empty()) return {};
  const std::vector<int> mine = cpus_of_list(affinity);
  Findings found;
  for (const topo::Gpu& gpu : facts.topology.gpus()) {
    if (gpu.node == topo::kNone) continue;
    const std::string near = facts.topology.cpus_of(facts.topology.numa_of(gpu.node));
    if (near.empty()) continue;
    bool any = false;
    for (const int cpu : cpus_of_list(near)) {
      any |= std::binary_search(mine.begin(), mine.end(), cpu);
    }
    const std::string evidence =
        fmt::format("Cpus_allowed_list: {}; CPUs near {}: {}", affinity, gpu.name, near);
    found.push_back(about(
        gpu.name,
        any ? ok("may run near it", evidence)
            : finding(Severity::slow, "bound to CPUs far from it: each command crosses sockets",
                      evidence,
                      {command("numactl --cpunodebind={} --membind={} COMMAND",
                               facts.topology.numa_of(gpu.node), facts.topology.numa_of(gpu.node)),
                       "# mpirun: --bind-to none, or --map-by numa"})));
  }
  return found;
}

Findings check_cpu_governor(const HostFacts& facts) {
  constexpr const char* kFolder = "sys/devices/system/cpu/cpufreq";
  std::map<std::string, int> governors;
  for (const std::string& policy : facts.files.list(kFolder)) {
    const std::string governor =
        facts.files.read(std::filesystem::path(kFolder) / policy / "scaling_governor");
    if (!governor.empty()) ++governors[governor];
  }
  if (governors.empty()) return {};
  std::string evidence = fmt::format("{}/policy*/scaling_governor:", kFolder);
  for (const auto& [name, count] : governors) evidence += fmt::format(" {} ({})", name, count);
  if (governors.size() == 1 && governors.contains("performance")) {
    return {ok("performance", evidence)};
  }
  return {finding(Severity::warn, "CPUs lower their clock: latency of small messages grows",
                  evidence, {"cpupower frequency-set -g performance"})};
}

Findings check_hugepages(const HostFacts& facts) {
  constexpr const char* kPath = "sys/kernel/mm/transparent_hugepage/enabled";
  const std::string text = facts.files.read(kPath);
  if (text.empty()) return {};
  const std::string evidence = fmt::format("{}: {}; proc/sys/vm/nr_hugepages: {}", kPath, text,
                                           facts.files.read("proc/sys/vm/nr_hugepages"));
  const bool reserved = topo::leading_number(facts.files.read("proc/sys/vm/nr_hugepages")) > 0;
  if (text.find("[never]") == text.npos || reserved) return {ok("can be had", evidence)};
  return {finding(Severity::warn,
                  "none: registering large host buffers takes 512 times the entries", evidence,
                  {"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"})};
}

}  // namespace gdrx::doctor
