// SPDX-License-Identifier: Apache-2.0
// Proofs by doing: what was registered, written and read back. A loaded module proves nothing.
#include <algorithm>
#include <array>
#include <cerrno>
#include <map>

#include "doctor/checks/checks.hpp"

namespace gdrx::doctor {
namespace {

std::string shown(const Proof& proof) {
  return fmt::format(
      "{}: {}", proof.way,
      proof.problem.empty() ? "2 MiB written and read back, data equal" : proof.problem);
}

Lines host_lines(const Proof& proof) {
  if (proof.native == ENOMEM) return {"ulimit -l unlimited   # see memlock"};
  return {"# a NIC reaches itself if its port has an address and nothing drops UDP 4791:",
          "gdrx doctor | grep -e roce-gid -e port-state",
          command("ib_write_bw -d {} & ib_write_bw -d {} localhost", proof.nic, proof.nic)};
}

Lines gpu_lines(const std::vector<const Proof*>& tries) {
  Lines lines;
  for (const Proof* one : tries) {
    const bool peer = one->way == "nvidia-peermem";
    if (one->native == ENOMEM)
      lines.push_back("# not enough BAR1 or locked memory: see bar1, memlock");
    if (peer && (one->native == EFAULT || one->native == EINVAL)) {
      lines.push_back("modprobe nvidia-peermem   # for peer memory");
    }
    if (!peer && (one->native == EOPNOTSUPP || one->native == EPROTONOSUPPORT)) {
      lines.push_back(
          "# for dma-buf: a kernel from 5.12, the open GPU driver, a NIC driver with it:");
      lines.push_back("gdrx doctor | grep dmabuf");
    }
  }
  if (lines.empty()) lines = {"dmesg | tail -50", "gdrx doctor | grep -e acs -e iommu"};
  return lines;
}

std::string gpu_name(const HostFacts& facts, const std::string& bus) {
  const auto found = facts.topology.find(bus);
  return found ? facts.topology.name(*found) : bus;
}

bool is_virtual(const HostFacts& facts, const std::string& nic) {
  return std::any_of(facts.topology.nics().begin(), facts.topology.nics().end(),
                     [&](const topo::Nic& one) { return one.name == nic && one.is_virtual; });
}

Finding not_tried(const HostFacts& facts) {
  const std::string& why = facts.proofs.error().what;
  return finding(Severity::unknown, "not tried: " + why, why,
                 {"gdrx doctor   # on the host, without --no-proof"});
}

}  // namespace

Findings check_rdma_loopback(const HostFacts& facts) {
  if (facts.topology.nics().empty()) return {};
  if (!facts.proofs) return {not_tried(facts)};
  Findings found;
  for (const Proof& proof : *facts.proofs) {
    if (!proof.gpu.empty()) continue;
    const std::string subject = fmt::format("{} port {}", proof.nic, proof.port);
    found.push_back(
        about(subject, proof.problem.empty()
                           ? ok("host memory: written, read back and equal", shown(proof))
                           : finding(Severity::fail, "RDMA does not work even to itself",
                                     shown(proof), host_lines(proof))));
  }
  return found;
}

Findings check_gdr_proof(const HostFacts& facts) {
  if (facts.topology.nics().empty() || !facts.has_nvidia_gpu) return {};
  if (!facts.proofs) return {not_tried(facts)};
  // One finding for each GPU and NIC; one way that works is enough.
  std::map<std::pair<std::string, std::string>, std::vector<const Proof*>> pairs;
  for (const Proof& proof : *facts.proofs) {
    if (proof.gpu.empty() || is_virtual(facts, proof.nic)) continue;
    pairs[{gpu_name(facts, proof.gpu), proof.nic}].push_back(&proof);
  }
  Findings found;
  for (const auto& [names, tries] : pairs) {
    std::string evidence;
    std::string works;
    for (const Proof* one : tries) {
      evidence += (evidence.empty() ? "" : "; ") + shown(*one);
      if (one->problem.empty()) works += (works.empty() ? "" : " and ") + one->way;
    }
    const std::string subject = fmt::format("{} {}", names.first, names.second);
    found.push_back(
        about(subject, !works.empty()
                           ? ok("the NIC reached its memory by " + works, evidence)
                           : finding(Severity::fail, "the NIC cannot reach its memory by any way",
                                     evidence, gpu_lines(tries))));
  }
  return found;
}

}  // namespace gdrx::doctor
