// SPDX-License-Identifier: Apache-2.0
// Alone: this is compiled at each commit.
#include "tools/version.hpp"

#include "commit.h"  // written at each build

namespace gdrx::tools {

std::string version_line() { return "gdrx " GDRX_VERSION_TEXT ", commit " GDRX_COMMIT; }

}  // namespace gdrx::tools
