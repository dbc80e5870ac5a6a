// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/provenance.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <thread>

#include "collectives/tune/tune_table.hpp"
#include "commit.h"  // written at each build

namespace gdrx::bench {
std::string machine() {
  utsname system{};
  uname(&system);
  const std::string cpu = tune::cpu_model();
  return fmt::format("{}, {} CPUs, Linux {}", cpu.empty() ? "unknown CPU" : cpu,
                     std::thread::hardware_concurrency(), system.release);
}

std::string commit() { return GDRX_COMMIT; }

}  // namespace gdrx::bench
