// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "tools/mpirun/mpirun_launcher.hpp"

namespace gdrx::tools {

/// Empty: no folder of PATH has it. A name with a slash is a path.
std::filesystem::path on_path(const std::string& name);

struct Launcher {
  std::filesystem::path path;
  const Family* family;
  const Family* programs;  // whose object is preloaded
};
/// The mpirun of the first of the words that is a program of some MPI, else what comes first on
/// PATH. Throws Failure where there is none.
Launcher launcher_for(const std::vector<std::string>& words);

/// gdrx's variables that are set: ranks decide by them, and must decide alike.
Variables own_variables();

/// This process becomes the program. words[0] is its name. Throws Failure where it cannot.
[[noreturn]] void become(const std::filesystem::path& program, std::vector<std::string> words);

/// Starts it, to ask for its version. Null: nobody we know.
const Family* family_of_launcher(const std::filesystem::path& launcher);

}  // namespace gdrx::tools
