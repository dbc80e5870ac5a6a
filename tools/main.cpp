// SPDX-License-Identifier: Apache-2.0
// gdrx: one command, many questions. Each subcommand has its own file.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "tools/command.hpp"

namespace gdrx::tools {
namespace {

constexpr std::array kCommands{
    Command{"topo", "GPUs, NICs and the paths between them", topo_command},
};

int usage(std::FILE* to, int status) {
  fmt::print(to, "usage: gdrx COMMAND [options]\n\n");
  for (const Command& command : kCommands) {
    fmt::print(to, "  {:<10} {}\n", command.name, command.help);
  }
  fmt::print(to, "\ngdrx COMMAND --help tells more.\n");
  return status;
}

int run(int argc, char** argv) {
  if (argc < 2) return usage(stderr, kUsage);
  const std::string_view name = argv[1];
  if (name == "--help" || name == "-h" || name == "help") return usage(stdout, kDone);
  const auto* found = std::find_if(kCommands.begin(), kCommands.end(),
                                   [&](const Command& command) { return command.name == name; });
  if (found == kCommands.end()) {
    fmt::print(stderr, "gdrx: no command '{}'\n", name);
    return usage(stderr, kUsage);
  }
  return found->run(argc - 1, argv + 1);
}

}  // namespace
}  // namespace gdrx::tools

int main(int argc, char** argv) {
  // hwloc writes banners about bad files to stderr, and only its environment can stop it. Here,
  // where no other thread is yet; what it cannot read is one line of ours.
  setenv("HWLOC_HIDE_ERRORS", "2", 0);
  try {
    return gdrx::tools::run(argc, argv);
  } catch (const std::exception& error) {  // memory, or a defect: nothing here throws by intent
    fmt::print(stderr, "gdrx: {}\n", error.what());
    return gdrx::tools::kFailed;
  }
}
