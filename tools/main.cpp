// SPDX-License-Identifier: Apache-2.0
// gdrx: what the library knows, as a command. Bad input: one line on stderr, and not 0.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "base/printable.hpp"
#include "gdrx/config.hpp"
#include "gdrx/output.hpp"
#include "tools/commands.hpp"
#include "tools/describe.hpp"
#include "tools/doctor/doctor_view.hpp"
#include "tools/help.hpp"
#include "tools/version.hpp"

namespace {

using Add = void (*)(CLI::App&);
constexpr Add kCommands[] = {
    gdrx::tools::add_config, gdrx::tools::add_doctor,   gdrx::tools::add_perf,
    gdrx::tools::add_plan,   gdrx::tools::add_snapshot, gdrx::tools::add_topo,
    gdrx::tools::add_stats,  gdrx::tools::add_tune,     gdrx::tools::add_mpirun,
    gdrx::tools::add_run,
};

constexpr const char* kNotWritten = "cannot write to stdout";

// One line, whatever a file or a name in it holds.
int fail(int status, const std::string& line) {
  std::fprintf(stderr, "gdrx: %s\n", gdrx::printable(line).c_str());
  return status;
}

std::string no_such_command(const CLI::App& app, const std::string& name) {
  std::string known;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    names.push_back(command->get_name());
    known += (known.empty() ? "" : ", ") + names.back();
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  if (const auto near = gdrx::nearest_name(name, views)) {
    return "there is no command '" + name + "': did you mean " + std::string(*near) + "?";
  }
  return "there is no command '" + name + "'; there are " + known;
}

}  // namespace

int main(int argc, char** argv) {
  // hwloc writes banners about bad files to stderr, and only its environment can stop it. Here,
  // where no other thread is yet; what it cannot read is one line of ours.
  setenv("HWLOC_HIDE_ERRORS", "2", 0);
  CLI::App app("Collective communication for GPU and host buffers: topology, plans, configuration.",
               "gdrx");
  app.formatter(gdrx::tools::help_formatter());
  app.set_version_flag("--version", gdrx::tools::version_line());
  app.require_subcommand(1);
  app.footer(
      "`gdrx COMMAND --help` has examples.\n"
      "Exit status: 0 if all is well, 1 if something failed or does not hold, 2 for bad usage.");
  for (const Add add : kCommands) add(app);
  try {
    // CLI11 takes each "--" away, by which these words are divided.
    const std::vector<std::string> words(argv + 1, argv + argc);
    const bool runs =
        words.size() > 1 && words[0] == "run" && words[1] != "--help" && words[1] != "-h";
    if (runs) gdrx::tools::run({words.begin() + 1, words.end()});
    if (words.size() == 1 && words[0] == gdrx::tools::kDescribe) {
      std::fputs(gdrx::tools::options_of(app).c_str(), stdout);
    } else {
      app.parse(argc, argv);
    }
    return gdrx::all_printed() ? 0 : fail(gdrx::tools::kFailed, kNotWritten);
  } catch (const CLI::Success& help) {
    const int status = app.exit(help);
    return std::cout.flush() ? status : fail(gdrx::tools::kFailed, kNotWritten);
  } catch (const CLI::ParseError& error) {
    if (argc > 1 && app.get_subcommands().empty() && argv[1][0] != '-') {
      return fail(gdrx::tools::kBadUsage, no_such_command(app, argv[1]));
    }
    return fail(gdrx::tools::kBadUsage, error.what() + std::string("; see --help"));
  } catch (const gdrx::tools::Failure& failure) {
    return fail(failure.status, failure.line);
  } catch (const std::exception& error) {
    return fail(gdrx::tools::kFailed, error.what());
  }
}
