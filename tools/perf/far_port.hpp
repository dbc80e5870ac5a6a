// SPDX-License-Identifier: Apache-2.0
// A port of another host, as that host describes it: what a queue pair here has to know of it.
#pragma once

#include <array>
#include <istream>
#include <string>

#include "tools/perf/nic_port.hpp"

namespace gdrx::perf {

struct FarPort {
  std::string name;  // "mlx5_0 port 1"
  std::uint16_t lid = 0;
  bool ethernet = false;
  ibv_mtu mtu = IBV_MTU_1024;
  int reads = 1;  // RDMA reads that it answers at once
  std::array<std::uint8_t, 16> gid{};
};

FarPort far_port(const NicPort& port);

/// Seven words without a line's end, and back: what follows them in `words` is left there. Errors:
/// Errc::protocol, something else stood there.
std::string port_words(const FarPort& port);
Result<FarPort> read_port(std::istream& words);

/// From `here` to queue pair `number` of that port. Errors: InfiniBand on one side only.
Result<verbs::QpRoute> route(const NicPort& here, const FarPort& there, std::uint32_t number,
                             const PairOptions& options);

}  // namespace gdrx::perf
