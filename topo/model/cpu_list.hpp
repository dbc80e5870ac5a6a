// SPDX-License-Identifier: Apache-2.0
// Lists of CPUs as the kernel writes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gdrx::topo {

/// "0-3,8" in ascending order, each CPU once. What does not parse is left out, and so are numbers
/// from 65536 on, so that a broken file costs nothing.
std::vector<int> cpus_of_list(std::string_view text);
/// The list of CPUs in ascending order: "0-3,8".
std::string list_of_cpus(const std::vector<int>& cpus);

}  // namespace gdrx::topo
