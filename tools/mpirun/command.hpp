// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "tools/mpirun/launcher.hpp"

namespace gdrx::tools {

/// Empty: no folder of PATH has it. A name with a slash is a path.
std::filesystem::path on_path(const std::string& name);

/// Starts it, to ask for its version. Null: nobody we know.
const Family* family_of_launcher(const std::filesystem::path& launcher);

}  // namespace gdrx::tools
