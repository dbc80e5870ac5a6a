// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gdrx/config.hpp"

namespace gdrx {

/// The row for GDRX_ALGO.
Variable algorithm_variable();

}  // namespace gdrx
