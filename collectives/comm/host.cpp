// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/host.hpp"

#include <sched.h>

namespace gdrx {

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
