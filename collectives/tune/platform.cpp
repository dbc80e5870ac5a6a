// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "collectives/tune/tune_table.hpp"

namespace gdrx::tune {

namespace {

std::string read_cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return {};
}

}  // namespace

// Once: the kernel writes as many pages for it as there are CPUs.
std::string cpu_model() {
  static const std::string model = read_cpu_model();
  return model;
}

}  // namespace gdrx::tune
