// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tools/commands.hpp"

namespace gdrx::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples =
    "Examples:\n"
    "  gdrx mpirun -np 4 ./app            its collectives by gdrx, where that is faster\n"
    "  GDRX_MPI=all,explain gdrx mpirun -np 4 ./app    all that can be, and a table at the end\n"
    "Every word goes to mpirun as it is. By hand: mpirun -x LD_PRELOAD=.../libgdrx-coll-ompi.so "
    "...";
constexpr const char* kObject = "libgdrx-coll-ompi.so";

// Behind all links, as the distribution's alternatives are.
fs::path program_of_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const fs::path candidate = fs::path(rest.substr(0, end)) / name;
    rest.erase(0, end + 1);
    std::error_code error;
    if (access(candidate.c_str(), X_OK) == 0) return fs::canonical(candidate, error);
  }
  throw Failure{kFailed, "there is no " + name + " on PATH: install Open MPI"};
}

// What is to be preloaded for the MPI whose launcher that is.
std::string object_for(const fs::path& launcher) {
  const std::string name = launcher.filename();
  if (name.find("hydra") != name.npos || name.find("mpich") != name.npos) {
    throw Failure{kFailed, "mpirun is " + launcher.string() +
                               ", MPICH's or Intel MPI's: so far gdrx serves programs of Open MPI"};
  }
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* const folder : {"../lib", "../lib64"}) {
    const fs::path object = fs::weakly_canonical(here / folder / kObject, error);
    if (fs::exists(object, error)) return object;
  }
  throw Failure{kFailed, fmt::format("there is no {} beside this command: build gdrx where Open "
                                     "MPI's headers are",
                                     kObject)};
}

// Names of gdrx's variables that are set: ranks decide by them, and must decide alike. One alone
// says which host a rank is on.
std::vector<std::string> own_variables() {
  std::vector<std::string> names;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view variable = *one;
    const std::string_view name = variable.substr(0, variable.find('='));
    if (name.starts_with("GDRX_") && name != "GDRX_HOST_ID") names.emplace_back(name);
  }
  return names;
}

// What `-x LD_PRELOAD=...` names, as MPI takes a variable once: behind a colon each, and no word of
// mpirun's any more.
std::string take_preloaded(std::vector<std::string>& words) {
  constexpr std::string_view kVariable = "LD_PRELOAD=";
  std::string taken;
  for (std::size_t i = 0; i + 1 < words.size();) {
    if (words[i] == "-x" && words[i + 1].starts_with(kVariable)) {
      taken += ":" + words[i + 1].substr(kVariable.size());
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i),
                  words.begin() + static_cast<std::ptrdiff_t>(i) + 2);
    } else {
      ++i;
    }
  }
  return taken;
}

[[noreturn]] void launch(std::vector<std::string> words) {
  std::string preloaded = object_for(program_of_path("mpirun"));
  preloaded += take_preloaded(words);
  if (const char* const others = std::getenv("LD_PRELOAD"); others != nullptr && *others != 0) {
    preloaded += std::string(":") + others;
  }
  words.insert(words.begin(), {"mpirun", "-x", "LD_PRELOAD=" + preloaded});
  // Open MPI takes the ranks' variables from here, but for other hosts only those that are named.
  for (const std::string& name : own_variables()) words.insert(words.begin() + 1, {"-x", name});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  throw Failure{kFailed, fmt::format("mpirun cannot be started: {}", std::strerror(errno))};
}

}  // namespace

void add_mpirun(CLI::App& app) {
  auto* command = app.add_subcommand("mpirun", "run an MPI program with gdrx's collectives");
  command->footer(kExamples);
  command->prefix_command();
  command->callback([command] {
    if (command->remaining().empty()) throw Failure{kBadUsage, "mpirun: what is to be run?"};
    launch(command->remaining());
  });
}

}  // namespace gdrx::tools
