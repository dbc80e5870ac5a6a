// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>

#include "doctor/host_facts.hpp"
#include "doctor/probes/probes.hpp"
#include "gdrx/config.hpp"

namespace gdrx::doctor {

Probes live_probes() {
  Probes probes = file_probes("/");  // capabilities and affinity: /proc/self is about this process
  probes.libraries_asked = true;
  probes.kernel_release = [] {
    utsname name{};
    return uname(&name) == 0 ? std::string(name.release) : std::string();
  };
  probes.limit = [](Resource resource) -> std::optional<std::uint64_t> {
    rlimit limit{};
    const auto which = resource == Resource::memlock ? RLIMIT_MEMLOCK : RLIMIT_NOFILE;
    if (getrlimit(which, &limit) != 0) return std::nullopt;
    return limit.rlim_cur == RLIM_INFINITY ? kUnlimited : limit.rlim_cur;
  };
  probes.file_system_bytes = [](const std::string& mount) -> std::optional<std::uint64_t> {
    struct statvfs size {};
    if (statvfs(mount.c_str(), &size) != 0) return std::nullopt;
    return static_cast<std::uint64_t>(size.f_blocks) * size.f_frsize;
  };
  probes.open_errno = [](const std::string& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return errno;
    close(fd);
    return 0;
  };
  probes.environment = [] { return process_environment(); };
  probes.cuda = probe_cuda;
  probes.nvml = probe_nvml;
  probes.verbs = probe_verbs;
  probes.dcb = probe_dcb;
  probes.proofs = []() -> Result<std::vector<Proof>> {
    return fail(Errc::unsupported, "not tried");
  };
  return probes;
}

}  // namespace gdrx::doctor
