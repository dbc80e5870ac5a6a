// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gdrx::tls_cost {

/// A TCP connection to the other process, over GDRX_SOCKET_IFNAME's address or the loopback one.
int connect_to_peer(int rank, int channel);
/// The network namespace of that name, for this process alone.
void enter_netns(const std::string& name);

}  // namespace gdrx::tls_cost
