// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/host_id.hpp"

#include <unistd.h>

#include <array>
#include <fstream>

namespace gdrx {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown-host";
  return name.data();
}

std::string host_id(const Config& config) {
  if (!config.host_id.empty()) return config.host_id;
  static const std::string boot = [] {
    std::string id;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
    return id;
  }();
  return boot + "/" + host_name();
}

}  // namespace gdrx
