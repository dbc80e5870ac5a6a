// SPDX-License-Identifier: Apache-2.0
#include "mpi/waiting.hpp"

#include <ctime>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "mpi/abi/abi.hpp"

namespace gdrx::mpi {
namespace {

// A round takes about a microsecond where nobody else has the core. After some 20 ms the others
// compute, or are stopped: from then on a call sleeps between its looks, longer and longer, and
// nine times as long as a round with its sleep takes of the core, which kernels and MPIs decide.
constexpr std::uint64_t kAwake = 20'000;
constexpr std::uint64_t kRoundsPerMicrosecond = 10;
constexpr std::chrono::nanoseconds kLongestSleep = std::chrono::microseconds(200);
constexpr int kLooks = 8;  // after a sleep: what came meanwhile takes MPI several to go on with
constexpr int kSleepPerWork = 9;
constexpr std::chrono::nanoseconds kMostWork =
    std::chrono::microseconds(100);  // more was another call

std::chrono::nanoseconds computed() noexcept {  // by this thread, whoever else has the core
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::chrono::nanoseconds work_of_a_round(bool first) noexcept {
  thread_local std::chrono::nanoseconds last{};
  const std::chrono::nanoseconds now = computed();
  if (first) last = now;
  return std::min(now - std::exchange(last, now), kMostWork);
}

}  // namespace

void while_waiting(void*, std::uint64_t rounds) noexcept {
  if (rounds < kAwake) return let_mpi_go_on();
  for (int looks = kLooks; looks > 0; --looks) let_mpi_go_on();
  const std::chrono::nanoseconds planned =
      std::chrono::microseconds((rounds - kAwake) / kRoundsPerMicrosecond + 20);
  std::this_thread::sleep_for(std::max(std::min(planned, kLongestSleep),
                                       kSleepPerWork * work_of_a_round(rounds == kAwake)));
}

}  // namespace gdrx::mpi
