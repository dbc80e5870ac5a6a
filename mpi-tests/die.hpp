// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gdrx::bench {

/// Prints the error as this rank's and ends the process with status 3: other ranks, and MPI, may
/// hang. Any thread; the first one speaks. Stays for half a second after it has spoken, see
/// die.cpp.
[[noreturn]] void die(int rank, const std::string& message);

}  // namespace gdrx::bench
