// SPDX-License-Identifier: Apache-2.0
// Where this process's cgroup keeps a limit.
#pragma once

#include <string>
#include <string_view>

#include "topo/read/host_files.hpp"

namespace gdrx::doctor {

/// "sys/fs/cgroup/user.slice/memory.max", by proc/self/cgroup: "0::/path" of version 2, or the line
/// of a controller of version 1. Empty where there is none.
std::string cgroup_file(const topo::HostFiles& files, std::string_view controller,
                        std::string_view file);

}  // namespace gdrx::doctor
