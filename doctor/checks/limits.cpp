// SPDX-License-Identifier: Apache-2.0
// What a process may have.
#include <charconv>

#include "doctor/checks/cgroup.hpp"
#include "doctor/checks/checks.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::doctor {
namespace {

constexpr std::uint64_t kEnoughShm = std::uint64_t{1} << 30;
constexpr std::uint64_t kTinyShm = std::uint64_t{128} << 20;  // containers have 64 MiB
constexpr std::uint64_t kEnoughFiles = 4096;
constexpr int kEnoughMaps = 65530;  // the kernel's default

Lines memlock_lines(const HostFacts& facts) {
  if (facts.in_container) {
    return {"docker run --ulimit memlock=-1 --cap-add IPC_LOCK ...",
            "# Kubernetes: securityContext: {capabilities: {add: [IPC_LOCK]}}"};
  }
  return {"printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' \\",
          "  > /etc/security/limits.d/90-gdrx.conf",
          "# log in again. Services have their own limit (slurmd, sshd, containerd):",
          "systemctl edit slurmd   # [Service] LimitMEMLOCK=infinity",
          "# Slurm: PropagateResourceLimitsExcept=MEMLOCK in slurm.conf"};
}

}  // namespace

Findings check_memlock(const HostFacts& facts) {
  const auto limit = facts.probes.limit(Resource::memlock);
  const bool may_lock = has_capability(facts, kCapIpcLock);
  if (!limit) {
    return {finding(Severity::unknown, "the limit cannot be read", "getrlimit(RLIMIT_MEMLOCK)",
                    {"ulimit -l"})};
  }
  const std::string evidence = fmt::format("getrlimit(RLIMIT_MEMLOCK): {}; CAP_IPC_LOCK: {}",
                                           bytes_text(*limit), may_lock ? "yes" : "no");
  if (*limit == kUnlimited) return {ok("unlimited", evidence)};
  if (may_lock) {
    return {ok(fmt::format("{}, but this process has IPC_LOCK (as root): the limit does not count",
                           bytes_text(*limit)),
               evidence)};
  }
  if (*limit >= (std::uint64_t{64} << 30)) return {ok(bytes_text(*limit), evidence)};
  const bool tiny = *limit < (std::uint64_t{64} << 20);
  return {finding(tiny ? Severity::fail : Severity::warn,
                  fmt::format("{}: registering more fails with ENOMEM", bytes_text(*limit)),
                  evidence, memlock_lines(facts))};
}

Findings check_nofile(const HostFacts& facts) {
  const auto limit = facts.probes.limit(Resource::nofile);
  if (!limit) {
    return {finding(Severity::unknown, "the limit cannot be read", "getrlimit(RLIMIT_NOFILE)",
                    {"ulimit -n"})};
  }
  const std::string shown = *limit == kUnlimited ? "unlimited" : std::to_string(*limit);
  const std::string evidence = "getrlimit(RLIMIT_NOFILE): " + shown;
  if (*limit >= kEnoughFiles) return {ok(shown, evidence)};
  return {finding(Severity::warn, shown + ": each dma-buf and each connection needs a descriptor",
                  evidence,
                  {"ulimit -n 65536", "printf '* soft nofile 65536\\n* hard nofile 1048576\\n' \\",
                   "  > /etc/security/limits.d/91-gdrx.conf"})};
}

Findings check_shm(const HostFacts& facts) {
  const auto bytes = facts.probes.file_system_bytes("/dev/shm");
  if (!bytes) {
    return {finding(Severity::unknown, "its size cannot be read", "statvfs(/dev/shm)",
                    {"df -h /dev/shm"})};
  }
  const std::string evidence = "statvfs(/dev/shm): " + bytes_text(*bytes);
  if (*bytes >= kEnoughShm) return {ok(bytes_text(*bytes), evidence)};
  return {finding(
      *bytes <= kTinyShm ? Severity::fail : Severity::warn,
      bytes_text(*bytes) + ": ranks of one host share memory there; SIGBUS when it is full",
      evidence,
      facts.in_container
          ? Lines{"docker run --ipc host ...", "# or --shm-size 8g; Kubernetes: an emptyDir",
                  "# with medium: Memory on /dev/shm"}
          : Lines{"mount -o remount,size=50% /dev/shm"})};
}

Findings check_rdma_cgroup(const HostFacts& facts) {
  const std::string path = cgroup_file(facts.files, "rdma", "rdma.max");
  if (path.empty()) return {};
  const std::string text = facts.files.read(path);
  const std::string evidence = fmt::format("{}: {}", path, text.empty() ? "no limit" : text);
  // "mlx5_0 hca_handle=2 hca_object=2000"; a device without a line has no limit.
  bool limited = false;
  for (auto at = text.find('='); at != text.npos; at = text.find('=', at + 1)) {
    limited |= text.compare(at + 1, 3, "max") != 0;
  }
  if (!limited) return {ok("no limit", evidence)};
  return {finding(
      Severity::warn, "a cgroup limits RDMA handles or objects: creation fails at it", evidence,
      {"echo '<device> hca_handle=max hca_object=max' \\", command("  > {}", "/" + path)})};
}

Findings check_memory_cgroup(const HostFacts& facts) {
  std::string path = cgroup_file(facts.files, "memory", "memory.max");
  if (path.empty()) path = cgroup_file(facts.files, "memory", "memory.limit_in_bytes");
  if (path.empty()) return {};
  const std::string text = facts.files.read(path);
  // Version 1 says "no limit" as a number near 2^63.
  std::uint64_t bytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  const std::string evidence = fmt::format("{}: {}", path, text);
  if (text == "max" || bytes >= std::uint64_t{8} << 30) return {ok("8 GiB or more", evidence)};
  return {finding(Severity::warn, "pinned buffers count here: the kernel kills what goes over it",
                  evidence,
                  facts.in_container ? Lines{"docker run --memory 64g ..."}
                                     : Lines{command("echo max > {}", "/" + path)})};
}

Findings check_max_map_count(const HostFacts& facts) {
  constexpr const char* kPath = "proc/sys/vm/max_map_count";
  const std::string text = facts.files.read(kPath);
  if (text.empty()) return {};
  const std::string evidence = fmt::format("{}: {}", kPath, text);
  if (topo::leading_number(text) >= kEnoughMaps) return {ok(text, evidence)};
  return {finding(Severity::warn, text + ": a process with many buffers runs out of mappings",
                  evidence, sysctl_lines("vm.max_map_count", "262144"))};
}

Findings check_fork_safety(const HostFacts& facts) {
  const std::string evidence = "uname -r: " + facts.release;
  if (facts.kernel == KernelVersion{}) {
    return {
        finding(Severity::unknown, "the kernel's version is not known", evidence, {"uname -r"})};
  }
  if (facts.kernel >= KernelVersion{5, 12}) {
    return {ok("the kernel copies registered pages for a child", evidence)};
  }
  for (const char* name : {"RDMAV_FORK_SAFE", "IBV_FORK_SAFE"}) {
    if (!variable(facts, name).empty()) {
      return {ok(fmt::format("{} is set", name), fmt::format("environment: {}", name))};
    }
  }
  return {finding(Severity::warn,
                  "older than 5.12: after fork() or system(), registered pages may be the child's, "
                  "and data is lost without an error",
                  evidence, {"export RDMAV_FORK_SAFE=1", "export RDMAV_HUGEPAGES_SAFE=1"})};
}

}  // namespace gdrx::doctor
