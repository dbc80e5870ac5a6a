// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/die.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace gdrx::bench {
namespace {

// Open MPI 4.1 (odls: kill_local_procs) answers a death with SIGCONT, sleep(1), SIGTERM, sleep(1),
// SIGKILL to all that are left, and the SIGCHLD of any rank that ends meanwhile cuts a sleep short:
// two survivors that end at once have the others killed within milliseconds, before those could
// say who died. So whoever has spoken stays until everybody has, and leaves before the first second
// is over.
constexpr std::chrono::milliseconds kStay{500};

}  // namespace

void die(int rank, const std::string& message) {
  static std::atomic<bool> spoken{false};
  if (!spoken.exchange(true)) {
    const std::string line = fmt::format("[rank {} pid {}] gdrx: {}\n", rank, getpid(), message);
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    std::fflush(stdout);
    std::this_thread::sleep_for(kStay);
    std::_Exit(3);
  }
  while (true) std::this_thread::sleep_for(kStay);
}

}  // namespace gdrx::bench
