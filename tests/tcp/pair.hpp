// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/transport/device_pair.hpp"

namespace gdrx::test {

inline Config tcp_config(bool plain) {
  Config config;
  config.tcp_plain = plain;
  config.socket_ifname = "lo";
  return config;
}

inline std::shared_ptr<Device> open_tcp(Rank rank, const Config& config) {
  return open_device("tcp", rank, config);
}

class TcpPair : public DevicePair {
 public:
  explicit TcpPair(bool plain) : TcpPair(tcp_config(plain)) {}
  explicit TcpPair(const Config& config) : DevicePair("tcp", config) {}
};

}  // namespace gdrx::test
