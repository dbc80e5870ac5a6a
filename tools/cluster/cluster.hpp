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

/// `own`: this host's report. Nothing: this process is a rank of mpirun other than 0, and is done.
Result<std::optional<std::vector<HostReport>>> cluster_reports(const ClusterOptions& options,
                                                               const doctor::Report& own);
/// Those that need no report of this host.
Result<std::vector<HostReport>> remote_reports(const ClusterOptions& options);

}  // namespace gdrx::tools
