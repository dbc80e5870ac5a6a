// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/machine.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>
#include <thread>
#include "commit.h"  // written at each build

namespace gdrx::bench {
namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

}  // namespace

std::string machine() {
  utsname system{};
  uname(&system);
  return fmt::format("{}, {} CPUs, Linux {}", cpu_model(), std::thread::hardware_concurrency(),
                     system.release);
}

std::string commit() { return GDRX_COMMIT; }

}  // namespace gdrx::bench
