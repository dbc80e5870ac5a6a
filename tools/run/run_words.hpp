// SPDX-License-Identifier: Apache-2.0
// The command lines of `gdrx run`: its own, and the launcher's. Nothing here is started.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::tools {

struct RunWords {
  std::string launcher = "mpirun";  // or "torchrun"
  int ranks = 0;                    // 0: as many as the placement gives
  bool as_rank = false;             // a launcher has started this: become one rank's program
  bool unbound = false;  // with as_rank: the launcher has bound nothing, ranks share the mask
  bool report = false;   // each rank says where it is
  bool help = false;     // --help stands before the program
  bool crowded = false;  // more ranks than cores on the one host
  std::vector<std::string> options;  // the launcher's: what stands before "--" and is not gdrx's
  std::vector<std::string> program;
};
/// The first word that is neither an option nor its value is the program. Behind an option of the
/// launcher a "--" has to stand before the program. Error: one line.
Result<RunWords> parse_run(const std::vector<std::string>& words);

/// Where the words of a launcher differ.
enum class LauncherKind : std::uint8_t { open_mpi, hydra, torchrun };

/// What the launcher is given. `self`: this command's path; `python`: that starts a script of
/// torchrun, empty for another program; `variables`: names that Open MPI has to carry to other
/// hosts.
std::vector<std::string> launcher_words(LauncherKind kind, const RunWords& run,
                                        const std::string& self, const std::string& python,
                                        const std::vector<std::string>& variables);

struct LocalRank {
  int number = 0;  // of the ranks on this host
  int count = 1;
};
/// By the variables of Open MPI, hydra, Slurm, PALS or torchrun. `variable`: a value, empty if it
/// is not set. Nothing: no launcher has said.
std::optional<LocalRank> local_rank(const std::function<std::string(std::string_view)>& variable);

}  // namespace gdrx::tools
