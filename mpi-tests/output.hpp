// SPDX-License-Identifier: Apache-2.0
// Whether what a program prints and writes arrives.
#pragma once

#include <string>

#include "gdrx/result.hpp"

namespace gdrx::bench {

/// Flushes stdout; an error if any write to it has failed so far.
Result<void> all_printed();

/// Collective. Whether rank 0 will be able to write the file, asked before anything is measured:
/// it leaves no file, and one that is there as it is. An empty name is no file.
Result<void> can_write(const std::string& file, int rank);

}  // namespace gdrx::bench
