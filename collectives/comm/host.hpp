// SPDX-License-Identifier: Apache-2.0
// Facts about this process's host that ranks tell each other.
#pragma once

#include <bitset>
#include <string>

#include "gdrx/config.hpp"
#include "transport/bootstrap/host_id.hpp"

namespace gdrx {

inline constexpr std::size_t kMaxCpus = 1024;
using CpuSet = std::bitset<kMaxCpus>;

/// The processors this process may run on.
CpuSet usable_cpus();

}  // namespace gdrx
