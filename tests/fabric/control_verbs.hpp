// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tests/fabric/network.hpp"

namespace gdrx::sim {

/// The table of one host. The network outlives it.
std::shared_ptr<const verbs::VerbsTable> make_control_verbs(Network& network, int host);

}  // namespace gdrx::sim
