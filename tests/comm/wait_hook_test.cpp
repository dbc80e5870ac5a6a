// SPDX-License-Identifier: Apache-2.0
// What runs while a call waits may be a call of MPI's: it belongs to the program's threads alone.
#include <atomic>
#include <chrono>
#include <thread>

#include "collectives/api/c_mpi.hpp"
#include "tests/comm/processes.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;

std::atomic<int> by_the_program{0};
std::atomic<int> by_others{0};

void note_who_calls(void* user, std::uint64_t) {
  ++(*static_cast<std::thread::id*>(user) == std::this_thread::get_id() ? by_the_program
                                                                        : by_others);
}

int finalizes_beside_a_call(int rank, gdrxComm_t comm) {
  std::thread::id program = std::this_thread::get_id();
  if (gdrxCommOnWait(comm, note_who_calls, &program) != gdrxSuccess) return 1;
  float value = 1.0F;
  gdrxRequest_t sum = nullptr;
  gdrxRequest_t finalized = nullptr;
  if (rank == 1) std::this_thread::sleep_for(300ms);
  if (gdrxBarrier(comm, nullptr, nullptr) != gdrxSuccess) return 2;
  if (rank == 0 && by_the_program == 0) return 3;
  by_the_program = 0;
  if (rank == 1) std::this_thread::sleep_for(300ms);
  if (gdrxAllReduce(&value, &value, 1, gdrxFloat32, gdrxSum, comm, nullptr, &sum) != gdrxSuccess ||
      gdrxCommFinalize(comm, &finalized) != gdrxSuccess) {
    return 4;
  }
  while (gdrxTest(&finalized) == gdrxInProgress) std::this_thread::sleep_for(1ms);
  if (gdrxTest(&sum) != gdrxSuccess || value != 2.0F) return 5;
  if (by_others != 0) return 6;
  if (by_the_program != 0) return 7;  // nobody waited
  return gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 8;
}

TEST(WaitHook, IsCalledByNoThreadOfOurs) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 20;
  Processes ranks(2, config, finalizes_beside_a_call);
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
}

}  // namespace
}  // namespace gdrx::test
