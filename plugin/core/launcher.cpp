// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/launcher.hpp"

#include <charconv>
#include <string_view>

namespace gdrx::net {
namespace {

// Slurm: "8", "8(x2)", "8(x2),4"; of several kinds of hosts the first will do. 0: no number.
int number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return 0;
  const bool whole = end == text.data() + text.size() || *end == '(' || *end == ',';
  return whole ? value : 0;
}

}  // namespace

int ranks_here(const Environment& environment) {
  for (const std::string_view name : {"LOCAL_WORLD_SIZE=", "OMPI_COMM_WORLD_LOCAL_SIZE=",
                                      "MPI_LOCALNRANKS=", "SLURM_STEP_TASKS_PER_NODE="}) {
    for (const std::string_view one : environment) {
      if (!one.starts_with(name)) continue;
      if (const int ranks = number(one.substr(name.size())); ranks > 0) return ranks;
    }
  }
  return 1;
}

}  // namespace gdrx::net
