// SPDX-License-Identifier: Apache-2.0
#include "tests/comm/processes.hpp"

namespace gdrx::test {
namespace {

int sum_of_ones(gdrxComm_t comm) {
  float one = 1;
  float sum = 0;
  const gdrxResult_t result =
      gdrxAllReduce(&one, &sum, 1, gdrxFloat32, gdrxSum, comm, nullptr, nullptr);
  return result == gdrxSuccess ? static_cast<int>(sum) : -static_cast<int>(result);
}

int child_fails_and_parent_goes_on(int rank, gdrxComm_t comm) {
  if (sum_of_ones(comm) != 2) return 1;
  const pid_t child = rank == 0 ? fork() : 1;
  if (child == 0) {
    if (sum_of_ones(comm) != -static_cast<int>(gdrxInvalidArgument)) _exit(1);
    if (gdrxCommAbort(comm) != gdrxInvalidArgument) _exit(2);
    _exit(gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 3);
  }
  if (rank == 0) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) return 10 + WEXITSTATUS(status);
  }
  if (sum_of_ones(comm) != 2) return 2;
  return gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 3;
}

TEST(ForkedRank, IsRefusedItsParentsCommunicatorWhichGoesOn) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 10;
  Processes ranks(2, config, child_fails_and_parent_goes_on);
  EXPECT_EQ(ranks.wait(0), 0);
  EXPECT_EQ(ranks.wait(1), 0);
}

}  // namespace
}  // namespace gdrx::test
