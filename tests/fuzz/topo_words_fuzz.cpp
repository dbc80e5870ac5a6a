// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any words are a cluster, a change of one, devices of it and NCCL's graphs for it, or
// one line of error.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gdrx/topology.hpp"
#include "topo/model/nccl_graph.hpp"

namespace {

template <class T>
void one_line(const gdrx::Result<T>& result) {
  if (!result && describe(result.error()).find('\n') != std::string::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gdrx::topo;
  static const auto fixed = parse_cluster("2 H200, one 400 Gb/s NIC a GPU");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  one_line(parse_cluster(text));
  one_line(what_if(fixed->host, text));
  one_line(fixed->host.find(text));
  one_line(parse_nccl_graphs(text, "fuzz", fixed->host));
  return 0;
}
