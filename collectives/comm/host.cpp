// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/host.hpp"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace gdrx {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown-host";
  return name.data();
}

std::string host_id(const Config& config) {
  if (!config.host_id.empty()) return config.host_id;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot + "/" + host_name();
}

CpuSet usable_cpus() {
  CpuSet cpus;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) {
    cpus.set(0);
    return cpus;
  }
  for (std::size_t cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.set(cpu);
  }
  return cpus;
}

}  // namespace gdrx
