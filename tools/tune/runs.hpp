// SPDX-License-Identifier: Apache-2.0
// What allreduce_test has to run so that each route's times are known. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/comm/route.hpp"

namespace gdrx::tools {

using Words = std::vector<std::string>;

/// Whether the route takes GPU memory, of as many ranks as there are GPUs.
bool is_of_gpus(Route route) noexcept;
/// The options of each run. `transports`: of host memory. None: the route has no times of its own.
std::vector<Words> runs_of(Route route, std::span<const std::string> transports);

}  // namespace gdrx::tools
