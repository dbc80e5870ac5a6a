// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gdrx::tools {

/// "gdrx 1.2.3, commit abc": what `gdrx --version` prints.
std::string version_line();

}  // namespace gdrx::tools
