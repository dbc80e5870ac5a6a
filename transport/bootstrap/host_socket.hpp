// SPDX-License-Identifier: Apache-2.0
// Connections between processes of one user on one host (of one network namespace): they pass no
// network interface, so that nobody records them.
#pragma once

#include <string>

#include "transport/bootstrap/socket.hpp"

namespace gdrx {

/// A Unix socket by an abstract name, of 100 bytes at most.
Result<Socket> listen_on_host(const std::string& name);
/// Does not wait: an error if nobody listens there, or has no room now.
Result<Socket> connect_on_host(const std::string& name);
/// Whether the kernel says that this user's process is at the other end.
bool is_of_this_user(const Socket& socket) noexcept;

}  // namespace gdrx
