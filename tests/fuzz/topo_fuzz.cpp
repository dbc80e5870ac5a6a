// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any text is a topology or one line of error, and every answer about it ends.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gdrx/topology.hpp"
#include "topo/model/nccl_graph.hpp"

// hwloc loses some bytes over files that it refuses; what we lose ourselves still counts.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhwloc.so\n"; }

// What is written for NCCL is what NCCL takes.
static void graphs(const gdrx::topo::Topology& topology) {
  for (const bool alone : {false, true}) {
    const auto graphs = gdrx::topo::our_nccl_graphs(topology, alone);
    const auto expected = gdrx::topo::expected_nccl_ring(topology, alone);
    if (graphs.has_value() != expected.has_value()) std::abort();
    if (!graphs) continue;
    const std::string text = nccl_graph_xml(topology, *graphs);
    if (!parse_nccl_graphs(text, "written", topology)) std::abort();
  }
}

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
  graphs(*topology);
  return 0;
}
