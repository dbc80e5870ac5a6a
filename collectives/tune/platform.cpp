// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "collectives/tune/table.hpp"

namespace gdrx::tune {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return {};
}

}  // namespace gdrx::tune
