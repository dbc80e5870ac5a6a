// SPDX-License-Identifier: Apache-2.0
// Which ranks are of one host.
#pragma once

#include <string>

#include "gdrx/config.hpp"

namespace gdrx {

/// Equal for two ranks exactly if they share a running kernel: GDRX_HOST_ID, or its boot id and
/// name.
std::string host_id(const Config& config);
/// For people: the host's name.
std::string host_name();

}  // namespace gdrx
