// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/commands.hpp"
#include "tools/mpirun/linkage.hpp"
#include "tools/mpirun/mpirun_command.hpp"
#include "tools/mpirun/mpirun_launcher.hpp"

namespace gdrx::tools {
namespace fs = std::filesystem;

namespace {

constexpr const char* kMpirunExamples =
    "Examples:\n"
    "  gdrx mpirun -np 4 ./app            its collectives by gdrx, where that is faster\n"
    "  GDRX_MPI=all,explain gdrx mpirun -np 4 ./app    all that can be, and a table at the end\n"
    "Every word goes to the mpirun of the program's MPI as it is. By hand:\n"
    "  mpirun -x LD_PRELOAD=.../libgdrx-coll-ompi.so ...        Open MPI\n"
    "  mpirun -genv LD_PRELOAD .../libgdrx-coll-mpich.so ...    MPICH, Intel MPI\n"
    "  mpirun -genv LD_PRELOAD .../libgdrx-coll-standard.so ... MPI 5's interface\n"
    "A call waits for late ranks without end, as MPI's do; GDRX_TIMEOUT=SECONDS ends the wait.";

/// The first of the words that is a program of some MPI, and the library that it is linked to.
struct Program {
  std::string word;
  std::string library;
};
std::optional<Program> program_of(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.starts_with('-')) continue;
    const fs::path found = on_path(word);
    const fs::path path = found.empty() ? fs::path(word) : found;  // or of this folder
    if (const auto library = mpi_of(path)) return Program{word, *library};
  }
  return std::nullopt;
}

Launcher launcher_of(const Family& family, const Program& program) {
  std::string others;
  for (const std::string_view name : family.launchers) {
    const fs::path path = on_path(std::string(name));
    if (path.empty()) continue;
    const Family* const found = family_of_launcher(path);
    const bool serves = found != nullptr && family.versions.empty();
    if (found == &family || serves) return {path, found, &family};
    others =
        fmt::format("; {} is {}", path.string(),
                    found == nullptr ? "none that gdrx knows" : std::string(found->mpis) + "'s");
  }
  throw Failure{
      kFailed,
      fmt::format("{} is linked to {}, of {}, and there is no launcher of that on PATH ({}){}",
                  program.word, program.library, family.mpis, fmt::join(family.launchers, ", "),
                  others)};
}

// What is to be preloaded.
std::string object_of(const Family& family) {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* const folder : {"../lib", "../" GDRX_LIBDIR, "../lib64"}) {
    const fs::path object = fs::weakly_canonical(here / folder / family.object, error);
    if (fs::exists(object, error)) return object;
  }
  throw Failure{kFailed, fmt::format("there is no {} beside this command: install the package {}, "
                                     "or build gdrx where Open MPI's headers are",
                                     family.object, family.package)};
}

[[noreturn]] void launch(const std::vector<std::string>& given) {
  const Launcher launcher = launcher_for(given);
  const char* const others = std::getenv("LD_PRELOAD");
  std::vector<std::string> words = words_for(*launcher.family, given, object_of(*launcher.programs),
                                             others == nullptr ? "" : others, own_variables());
  // By a whole path Open MPI's would look for its parts there on other hosts, too.
  words.insert(words.begin(), launcher.path.filename().string());
  become(launcher.path, std::move(words));
}

}  // namespace

Launcher launcher_for(const std::vector<std::string>& words) {
  if (const auto program = program_of(words)) {
    const Family* const family = family_of_library(program->library);
    if (family != nullptr) return launcher_of(*family, *program);
    throw Failure{
        kFailed,
        fmt::format(
            "{} is linked to {}: gdrx serves programs of Open MPI 4.1 and 5, MPICH and Intel MPI, "
            "and of MPI 5's binary interface",
            program->word, program->library)};
  }
  const fs::path path = on_path("mpirun");
  if (path.empty()) {
    throw Failure{kFailed, "there is no mpirun on PATH: install Open MPI, MPICH or Intel MPI"};
  }
  const Family* const family = family_of_launcher(path);
  if (family != nullptr) return {path, family, family};
  throw Failure{kFailed,
                path.string() + " is of no MPI that gdrx knows: Open MPI, MPICH, Intel MPI"};
}

// One alone is not for others: it says which host a rank is on.
Variables own_variables() {
  Variables found;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view variable = *one;
    const std::size_t end = std::min(variable.find('='), variable.size());
    const std::string_view name = variable.substr(0, end);
    if (!name.starts_with("GDRX_") || name == "GDRX_HOST_ID") continue;
    found.emplace_back(name, variable.substr(std::min(end + 1, variable.size())));
  }
  return found;
}

void become(const fs::path& program, std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw Failure{kFailed,
                fmt::format("{} cannot be started: {}", words.front(), std::strerror(errno))};
}

fs::path on_path(const std::string& name) {
  if (name.find('/') != name.npos) return name;
  const char* const path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    fs::path candidate = fs::path(rest.substr(0, end)) / name;
    rest.erase(0, end + 1);
    std::error_code error;
    const bool is_program = fs::is_regular_file(candidate, error);
    if (is_program && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

const Family* family_of_launcher(const fs::path& launcher) {
  std::string quoted = "'";
  for (const char letter : launcher.string()) {
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  const std::string command = quoted + "' --version 2>&1 < /dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> printed(popen(command.c_str(), "r"), pclose);
  std::string text(4096, '\0');
  text.resize(printed == nullptr ? 0 : std::fread(text.data(), 1, text.size(), printed.get()));
  return family_of_version(text);
}

void add_mpirun(CLI::App& app) {
  auto* command = app.add_subcommand("mpirun", "run an MPI program with gdrx's collectives");
  command->footer(kMpirunExamples);
  command->prefix_command();
  command->callback([command] {
    if (command->remaining().empty()) throw Failure{kBadUsage, "mpirun: what is to be run?"};
    launch(command->remaining());
  });
}

}  // namespace gdrx::tools
