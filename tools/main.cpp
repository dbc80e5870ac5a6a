// SPDX-License-Identifier: Apache-2.0
// gdrx: what the library knows, as a command. Bad input: one line on stderr, and not 0.
#include <cstdio>

#include "tools/commands.hpp"

namespace {

using Add = void (*)(CLI::App&);
constexpr Add kCommands[] = {
    gdrx::tools::add_config,
    gdrx::tools::add_plan,
};

int fail(int status, const std::string& line) {
  std::fprintf(stderr, "gdrx: %s\n", line.c_str());
  return status;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Collective communication for GPU and host buffers: plans, configuration.", "gdrx");
  app.require_subcommand(1);
  app.footer(
      "`gdrx COMMAND --help` has examples.\n"
      "Exit status: 0 if all is well, 1 if something failed or does not hold, 2 for bad usage.");
  for (const Add add : kCommands) add(app);
  try {
    app.parse(argc, argv);
    return std::fflush(stdout) == 0 ? 0 : fail(gdrx::tools::kFailed, "cannot write to stdout");
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return fail(gdrx::tools::kBadUsage, one_line(error.what()) + "; see --help");
  } catch (const gdrx::tools::Failure& failure) {
    return fail(failure.status, one_line(failure.line));
  } catch (const std::exception& error) {
    return fail(gdrx::tools::kFailed, one_line(error.what()));
  }
}
