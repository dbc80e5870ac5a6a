// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/fabric/network.hpp"

namespace gdrx::sim {

/// From here on the verbs of this table are refused where Network::fail_verb() says so.
void refuse(verbs::VerbsTable& table, Network& network, int host);

}  // namespace gdrx::sim
