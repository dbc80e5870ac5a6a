// SPDX-License-Identifier: Apache-2.0
// Whether what a program prints and writes arrives.
#pragma once

#include <string>

#include "gdrx/result.hpp"

namespace gdrx {

/// Flushes stdout; an error if any write to it has failed so far.
Result<void> all_printed();

/// Whether the file can be written, asked before the work: it leaves no file, and one that is there
/// as it is.
Result<void> check_output(const std::string& file);

}  // namespace gdrx
