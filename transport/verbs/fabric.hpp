// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "gdrx/transport.hpp"
#include "transport/verbs/verbs_table.hpp"

namespace gdrx::verbs {

/// The fabric over these verbs: libibverbs' in the module, the simulated HCA's in tests.
std::shared_ptr<Fabric> make_fabric(std::shared_ptr<const VerbsTable> table);

}  // namespace gdrx::verbs
