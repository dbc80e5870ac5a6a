// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any text is a topology or one line of error, and every answer about it ends.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gdrx/topology.hpp"

// hwloc loses some bytes over files that it refuses; what we lose ourselves still counts.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhwloc.so\n"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto topology = gdrx::topo::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!topology) {
    if (describe(topology.error()).find('\n') != std::string::npos) std::abort();
    return 0;
  }
  if (topology->devices() > 40) return 0;  // large, and no new way through the code
  gdrx::topo::rail_map(*topology);
  gdrx::topo::ring_order(*topology);
  for (std::size_t i = 1; i < topology->devices(); ++i) {
    gdrx::topo::hops(*topology, gdrx::topo::DeviceId(0), gdrx::topo::DeviceId(i));
  }
  return 0;
}
