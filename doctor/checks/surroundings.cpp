// SPDX-License-Identifier: Apache-2.0
// What a program is started in: a container, and environment variables.
#include <array>

#include "doctor/checks/checks.hpp"

namespace gdrx::doctor {
namespace {

void add(std::string& list, const std::string& one) { list += (list.empty() ? "" : ", ") + one; }

}  // namespace

Findings check_container(const HostFacts& facts) {
  if (!facts.in_container) return {ok("not in one", ".dockerenv, proc/1/cgroup: no sign of one")};
  std::string lacks;
  Lines fix{"docker run \\"};
  const auto need = [&](bool lacking, const char* what, Literal flag) {
    if (!lacking) return;
    add(lacks, what);
    fix.push_back(command("  {} \\", flag));
  };
  const bool nics = !facts.topology.nics().empty();
  need(facts.has_nvidia_gpu && !facts.files.exists("dev/nvidiactl"), "GPU nodes", "--gpus all");
  need(nics && facts.files.list("dev/infiniband").empty(), "verbs nodes",
       "--device /dev/infiniband");
  const auto memlock = facts.probes.limit(Resource::memlock);
  need(!has_capability(facts, kCapIpcLock) && memlock != kUnlimited, "IPC_LOCK",
       "--cap-add IPC_LOCK --ulimit memlock=-1");
  const auto shm = facts.probes.file_system_bytes("/dev/shm");
  need(shm && *shm <= (std::uint64_t{64} << 20), "shared memory", "--ipc host");
  bool hidden = false;
  for (const Port& port : facts.ports) {
    hidden |= port.ethernet && !port.netdev.empty() &&
              !facts.files.exists("sys/class/net/" + port.netdev);
  }
  need(hidden, "the host's network", "--network host");
  if (lacks.empty()) return {ok("has what it needs", "dev/, CapEff, RLIMIT_MEMLOCK, /dev/shm")};
  fix.emplace_back("  ...   # none of it needs --privileged");
  return {finding(Severity::warn, "lacks " + lacks + "; programs fall back to TCP without a word",
                  "dev/, CapEff, RLIMIT_MEMLOCK, /dev/shm: lacks " + lacks, fix)};
}

Findings check_environment(const HostFacts& facts) {
  Findings found;
  const auto say = [&](Severity severity, Literal variable_name, std::string summary) {
    const std::string name(variable_name.text());
    found.push_back(about(name, finding(severity, std::move(summary),
                                        fmt::format("{}={}", name, variable(facts, name)),
                                        {command("unset {}", name)})));
  };
  if (variable(facts, "NCCL_IB_DISABLE") == "1") {
    say(Severity::fail, "NCCL_IB_DISABLE", "NCCL does not use RDMA at all");
  }
  const std::string level = variable(facts, "NCCL_NET_GDR_LEVEL");
  if (level == "LOC" || level == "0") {
    say(Severity::fail, "NCCL_NET_GDR_LEVEL", "NCCL never uses GPUDirect RDMA");
  } else if (level == "SYS" || level == "4" || level == "5") {
    say(Severity::warn, "NCCL_NET_GDR_LEVEL", "GPUDirect RDMA even over the link between sockets");
  }
  if (variable(facts, "NCCL_DMABUF_ENABLE") == "0") {
    say(Severity::warn, "NCCL_DMABUF_ENABLE", "NCCL uses nvidia-peermem only");
  }
  if (!variable(facts, "NCCL_IB_GID_INDEX").empty()) {
    say(Severity::warn, "NCCL_IB_GID_INDEX",
        "a fixed index is right on one host and wrong on the next; NCCL chooses well by itself");
  }
  const std::string file = variable(facts, "NCCL_TOPO_FILE");
  if (!file.empty() && !facts.files.exists(file.substr(file.starts_with('/') ? 1 : 0))) {
    say(Severity::fail, "NCCL_TOPO_FILE", "names a file that is not there");
  }
  if (found.empty()) return {ok("none", "no NCCL_* variable that limits GPUDirect RDMA")};
  return found;
}

}  // namespace gdrx::doctor
