// SPDX-License-Identifier: Apache-2.0
// net_conformance --bench: who runs where, and the table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "net-conformance/bench/bench.hpp"

namespace gdrx::conformance {

struct BenchCommand {
  Options plugin;
  BenchOptions options;
  int serve = 0;     // wait on this port for the process that dials
  std::string dial;  // host:port of the process that serves; neither: both processes are here
  std::string json;  // file; empty: none
};

/// Exit status.
int run_bench(const BenchCommand& command);

/// "8,4K,1M" as bytes.
Result<std::vector<std::size_t>> parse_sizes(const std::string& text);

}  // namespace gdrx::conformance
