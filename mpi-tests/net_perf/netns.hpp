// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "gdrx/result.hpp"

namespace gdrx::net_perf {

/// Moves this process into a network namespace of `ip netns`, as `ip netns exec` does: its /sys
/// shows that namespace's interfaces. Connections that stand stay where they are: MPI's. Root only,
/// while no other thread needs the network.
Result<void> enter_netns(const std::string& name);

}  // namespace gdrx::net_perf
