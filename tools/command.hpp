// SPDX-License-Identifier: Apache-2.0
// A subcommand of gdrx. To add one: a file with `int my_command(int argc, char** argv)`, its name
// in CMakeLists.txt, its line in main.cpp's table.
#pragma once

#include <optional>
#include <string_view>

#include "gdrx/result.hpp"

namespace CLI {
class App;
}

namespace gdrx::tools {

// Exit statuses, the same for every subcommand.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;  // the question was good, the answer is an error
inline constexpr int kUsage = 2;   // the command line was not understood

struct Command {
  std::string_view name;
  std::string_view help;  // one line
  int (*run)(int argc, char** argv);
};

int topo_command(int argc, char** argv);

/// "gdrx topo: what happened" on stderr; kFailed.
int report(std::string_view command, const Error& error);

/// CLI11's parse: the status to return, or nothing to go on.
std::optional<int> parse_options(CLI::App& app, int argc, char** argv);

}  // namespace gdrx::tools
