// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "gdrx/config.hpp"

namespace gdrx {

/// The rows for NCCL's variables.
std::vector<Variable> nccl_variables();

}  // namespace gdrx
