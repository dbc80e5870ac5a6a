// SPDX-License-Identifier: Apache-2.0
// Which of this host's addresses other hosts can reach.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/result.hpp"
#include "transport/bootstrap/socket.hpp"

namespace gdrx {

struct Interface {
  std::string name;
  SocketAddress address;
  bool loopback = false;
  bool default_route = false;
};

/// Interfaces of this host that are up, with an address each.
std::vector<Interface> list_interfaces();

/// `wanted` has NCCL_SOCKET_IFNAME's grammar: names by prefix, "=eth0" exactly, "^docker,lo" all
/// but these. Empty: the one with the default route, else the first that is neither loopback nor a
/// container bridge, else loopback. Pure.
Result<Interface> choose_interface(std::span<const Interface> all, std::string_view wanted);

}  // namespace gdrx
