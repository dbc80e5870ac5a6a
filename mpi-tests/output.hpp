// SPDX-License-Identifier: Apache-2.0
// The file for the figures, asked about before they are measured.
#pragma once

#include <string>

#include "gdrx/result.hpp"

namespace gdrx::bench {

/// Collective. Whether rank 0 will be able to write the file, asked before anything is measured:
/// it leaves no file, and one that is there as it is. An empty name is no file.
Result<void> can_write(const std::string& file, int rank);

}  // namespace gdrx::bench
