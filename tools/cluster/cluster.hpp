// SPDX-License-Identifier: Apache-2.0
// gdrx doctor --cluster: the reports of all hosts, however they are reached.
#pragma once

#include <optional>
#include <string>

#include "tools/cluster/compare.hpp"

namespace gdrx::tools {

struct ClusterOptions {
  std::string hosts;               // "a,b", or empty
  std::string hostfile;            // its name, or empty
  std::string launcher;            // empty: ssh
  std::vector<std::string> saved;  // names of reports to compare instead
  bool no_proof = false;
  int deadline = 120;  // seconds, for each host
};

/// `own`: this host's report, used under mpirun only. Nothing: this process is a rank of mpirun
/// other than 0, and is done. Under mpirun NICs of all hosts also try to reach each other, unless
/// no_proof.
Result<std::optional<Comparison>> cluster(const ClusterOptions& options, const doctor::Report& own);

}  // namespace gdrx::tools
