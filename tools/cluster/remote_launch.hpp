// SPDX-License-Identifier: Apache-2.0
// gdrx doctor on other hosts: started there by ssh or mpirun, their reports read from a pipe.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tools/cluster/compare.hpp"

namespace gdrx::tools {

struct LaunchOptions {
  /// Words; "{host}" stands for the host's name.
  std::string launcher = "ssh -o BatchMode=yes {host}";
  std::vector<std::string> command;  // on the host: gdrx doctor --format json
  std::chrono::seconds deadline{120};
  std::size_t at_once = 64;
};

/// "node1,node2" or the lines of a hostfile (first word each, '#' comments); each host once.
/// Names of other characters than letters, digits, '.', '-', '_' and ':' are refused: they would
/// be options or commands of the launcher.
Result<std::vector<std::string>> parse_hosts(std::string_view text);

/// A report or a problem of each, in their order. Programs that take too long are ended.
std::vector<HostReport> run_on_hosts(const std::vector<std::string>& hosts,
                                     const LaunchOptions& options);

}  // namespace gdrx::tools
