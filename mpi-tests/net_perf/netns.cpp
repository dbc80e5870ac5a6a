// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/net_perf/netns.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>

namespace gdrx::net_perf {

Result<void> enter_netns(const std::string& name) {
  const std::string path = "/run/netns/" + name;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(Errc::system, path, errno);
  const int entered = setns(fd, CLONE_NEWNET);
  const int why = errno;
  close(fd);
  if (entered != 0) return fail(Errc::system, "setns to " + path, why);
  if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "none", MS_SLAVE | MS_REC, nullptr) != 0) {
    return fail(Errc::system, "a mount namespace", errno);
  }
  umount2("/sys", MNT_DETACH);
  if (mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0) return fail(Errc::system, "/sys", errno);
  return {};
}

}  // namespace gdrx::net_perf
