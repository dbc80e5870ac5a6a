// SPDX-License-Identifier: Apache-2.0
// Where and of what a figure was made.
#pragma once

#include <string>

namespace gdrx::bench {

std::string machine();  // "AMD EPYC, 16 CPUs, Linux 6.1"
std::string
commit();  // of the sources this was built from, "+dirty" behind it if they were changed

}  // namespace gdrx::bench
