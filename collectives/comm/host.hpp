// SPDX-License-Identifier: Apache-2.0
// Facts about this process's host that ranks tell each other.
#pragma once

#include <bitset>
#include <string>

#include "gdrx/config.hpp"

namespace gdrx {

inline constexpr std::size_t kMaxCpus = 1024;
using CpuSet = std::bitset<kMaxCpus>;

/// Equal for two ranks exactly if they share a running kernel: GDRX_HOST_ID, or its boot id and
/// name.
std::string host_id(const Config& config);
/// For people: the host's name.
std::string host_name();
/// The processors this process may run on.
CpuSet usable_cpus();

}  // namespace gdrx
