// SPDX-License-Identifier: Apache-2.0
// What the checks look at, gathered once, and the words in which they answer.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "doctor/distribution.hpp"
#include "doctor/shell.hpp"
#include "gdrx/doctor.hpp"
#include "gdrx/topology.hpp"
#include "topo/read/host_files.hpp"

namespace gdrx::doctor {

using Findings = std::vector<Finding>;

/// One port of one RDMA device.
struct Port {
  std::string nic;
  std::string number;
  std::filesystem::path folder;  // sys/class/infiniband/mlx5_0/ports/1
  std::string netdev;            // RoCE: the network interface, empty unknown
  bool ethernet = false;
  bool is_virtual = false;
  std::string name() const { return nic + " port " + number; }
};

struct KernelVersion {
  int major = 0;
  int minor = 0;
  auto operator<=>(const KernelVersion&) const = default;
};

struct HostFacts {
  topo::HostFiles files;
  Probes probes;
  topo::Topology topology;
  Distribution distribution;
  std::string release;
  KernelVersion kernel;
  std::vector<Port> ports;
  Result<CudaFacts> cuda;
  Result<NvmlFacts> nvml;
  Result<VerbsFacts> verbs;
  Result<std::vector<Proof>> proofs;
  std::uint64_t capabilities = 0;  // 0 also where it is not known
  bool in_container = false;
  bool has_nvidia_gpu = false;
};
Result<HostFacts> gather(const Host& host);
/// As far as files answer.
Probes file_probes(const topo::HostFiles& files);

inline constexpr int kCapIpcLock = 14;
inline constexpr int kCapSysAdmin = 21;
inline bool has_capability(const HostFacts& facts, int bit) {
  return (facts.capabilities >> bit & 1u) != 0;
}
/// The value of an environment variable, empty where it is not set.
std::string variable(const HostFacts& facts, std::string_view name);
std::string nic_bus(const HostFacts& facts, const topo::Nic& nic);  // empty for a virtual one

inline Finding finding(Severity severity, std::string summary, std::string evidence,
                       const Lines& fix = {}) {
  Finding found{{}, {}, severity, std::move(summary), std::move(evidence), {}};
  for (const ShellLine& line : fix) found.fix.push_back(line.text());
  return found;
}
inline Finding ok(std::string summary, std::string evidence) {
  return finding(Severity::ok, std::move(summary), std::move(evidence));
}
inline Finding about(std::string subject, Finding found) {
  found.subject = std::move(subject);
  return found;
}
/// "64 KiB", "4 GiB", "unlimited"
std::string bytes_text(std::uint64_t bytes);

}  // namespace gdrx::doctor
