// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/transport/device_pair.hpp"

namespace gdrx::test {

inline Config ucx_config(const std::string& tls) {
  Config config;
  config.ucx_tls = tls;
  config.ucx_tcp = tls == "tcp";
  return config;
}

class Pair : public DevicePair {
 public:
  explicit Pair(const std::string& tls = {}) : DevicePair("ucx", ucx_config(tls)) {}
};

}  // namespace gdrx::test
