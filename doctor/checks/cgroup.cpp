// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/cgroup.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdrx::doctor {

std::string cgroup_file(const topo::HostFiles& files, std::string_view controller,
                        std::string_view file) {
  const std::string text = files.read("proc/self/cgroup");
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const auto first = line.find(':');
    const auto second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view names = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (path.find("..") != path.npos || (names != controller && !names.empty())) continue;
    const std::string folder =
        names.empty() ? "sys/fs/cgroup" : fmt::format("sys/fs/cgroup/{}", controller);
    // Inside a container the path may name the host's folder: then the limit is at the mount.
    for (const std::string& at :
         {fmt::format("{}{}/{}", folder, path, file), fmt::format("{}/{}", folder, file)}) {
      if (files.exists(at)) return at;
    }
  }
  return {};
}

}  // namespace gdrx::doctor
