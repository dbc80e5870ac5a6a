// SPDX-License-Identifier: Apache-2.0
// Prints the kernels of `gdrx perf --p2p`, for an assembler to judge.
#include <cstdio>

#include "tools/perf/p2p_kernels.hpp"

int main() { return std::fputs(gdrx::perf::kP2pKernels, stdout) < 0; }
