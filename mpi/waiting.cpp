// SPDX-License-Identifier: Apache-2.0
#include "mpi/waiting.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "mpi/abi/abi.hpp"

namespace gdrx::mpi {
namespace {

// A round takes about a microsecond where nobody else has the core. After some 20 ms the others
// compute, or are stopped: from then on a call sleeps between its looks, longer and longer.
constexpr std::uint64_t kAwake = 20'000;
constexpr std::uint64_t kRoundsPerMicrosecond = 10;
constexpr std::chrono::microseconds kLongestSleep{200};
constexpr int kLooks = 8;  // after a sleep: what came meanwhile takes MPI several to go on with

}  // namespace

void while_waiting(void*, std::uint64_t rounds) noexcept {
  for (int looks = rounds < kAwake ? 1 : kLooks; looks > 0; --looks) let_mpi_go_on();
  if (rounds < kAwake) return;
  const std::chrono::microseconds sleep((rounds - kAwake) / kRoundsPerMicrosecond + 20);
  std::this_thread::sleep_for(std::min(sleep, kLongestSleep));
}

}  // namespace gdrx::mpi
