// SPDX-License-Identifier: Apache-2.0
// perftest's names where the same thing is meant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gdrx/config.hpp"

namespace gdrx::net_perf {

struct Options {
  bool latency = false;
  bool bandwidth = false;
  std::vector<std::uint64_t> sizes;  // bytes
  int iterations = 0;                // 0: 1000 of latency, 5000 of bandwidth
  int warmup = 10;
  double duration = 0;   // seconds of a bandwidth row, instead of iterations
  std::string until;     // a file: a bandwidth row ends when it is there
  unsigned depth = 128;  // messages under way
  bool bidirectional = false;
  bool verify = false;             // every byte of every message
  double timeout = 20;             // seconds in which something has to move
  std::vector<std::string> netns;  // of rank 0 and rank 1; empty: as they are
  std::string json;
  Config config;  // the environment's, and -d, -q, -u, --transport over it
  bool help = false;
  bool described = false;  // help_text is printed, even where MPI cannot start
  std::string help_text;
};

/// One line of text in the error, for rank 0 to print.
Result<Options> parse_options(int argc, char** argv);

}  // namespace gdrx::net_perf
