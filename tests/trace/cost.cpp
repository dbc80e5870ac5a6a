// SPDX-License-Identifier: Apache-2.0
// trace_cost COUNT: so many blocking allReduces of one rank, the shortest way through the whole
// API; under callgrind with --collect-atstart=no only they are collected.
#include <valgrind/callgrind.h>

#include <cstdio>
#include <cstdlib>

#include "gdrx/gdrx.h"

int main(int argc, char** argv) {
  const int count = argc == 2 ? std::atoi(argv[1]) : 0;
  gdrxComm_t comm = nullptr;
  if (count < 1 || gdrxCommInitAll(&comm, 1, nullptr) != gdrxSuccess) {
    std::fprintf(stderr, "trace_cost: %s\n", gdrxGetLastError(nullptr));
    return 1;
  }
  float in[2] = {1, 2};
  float out[2] = {0, 0};
  const auto calls = [&](int n) {
    for (int i = 0; i < n; ++i) {
      gdrxAllReduce(in, out, 2, gdrxFloat32, gdrxSum, comm, nullptr, nullptr);
    }
  };
  calls(100);
  CALLGRIND_TOGGLE_COLLECT;
  calls(count);
  CALLGRIND_TOGGLE_COLLECT;
  const bool right = out[0] == 1 && out[1] == 2;
  return gdrxCommDestroy(comm) == gdrxSuccess && right ? 0 : 1;
}
