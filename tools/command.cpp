// SPDX-License-Identifier: Apache-2.0
#include "tools/command.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>

namespace gdrx::tools {

int report(std::string_view command, const Error& error) {
  fmt::print(stderr, "gdrx {}: {}\n", command, describe(error));
  return kFailed;
}

std::optional<int> parse_options(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kDone;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}: {}; see --help\n", app.get_name(), error.what());
    return kUsage;
  }
  return std::nullopt;
}

}  // namespace gdrx::tools
