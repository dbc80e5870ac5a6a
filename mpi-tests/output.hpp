// SPDX-License-Identifier: Apache-2.0
// Whether what a program prints and writes arrives.
#pragma once

#include <string>

#include "gdrx/result.hpp"

namespace gdrx::bench {

/// Flushes stdout; an error if any write to it has failed so far.
Result<void> all_printed();

}  // namespace gdrx::bench
