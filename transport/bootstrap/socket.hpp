// SPDX-License-Identifier: Apache-2.0
// Stream sockets that never block longer than a deadline and never raise SIGPIPE.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "gdrx/clock.hpp"
#include "gdrx/config.hpp"
#include "gdrx/result.hpp"
#include "gdrx/waits.hpp"

namespace gdrx {

/// IPv4 or IPv6 address and port, as it goes over the wire.
struct SocketAddress {
  std::uint16_t family = 0;  // 4 or 6
  std::uint16_t port = 0;    // host order
  std::array<std::uint8_t, 16> ip{};
  friend bool operator==(const SocketAddress&, const SocketAddress&) = default;
};
static_assert(sizeof(SocketAddress) == 20);

std::string to_string(const SocketAddress& address);
SocketAddress loopback_address();
/// Family and address from the kernel's form; nothing for other families.
Result<SocketAddress> from_sockaddr(const sockaddr* address);

/// Owns a non-blocking descriptor, which children of fork() do not get.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) noexcept;
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  /// Port 0: one of `ports`, or the kernel chooses.
  static Result<Socket> listen(const SocketAddress& address, PortRange ports = {});
  /// Tries again while the other side refuses or cannot be reached, until the deadline.
  static Result<Socket> connect(const SocketAddress& address, Deadline deadline);
  /// The same to a side that is known to have listened: if it refuses now, it is gone, and that is
  /// Errc::peer_lost at once.
  static Result<Socket> connect_again(const SocketAddress& address, Deadline deadline);

  /// Starts to connect and does not wait: connected() says when it is done.
  static Result<Socket> begin_connect(const SocketAddress& address);
  /// Errc::peer_lost, with its errno, if the other side did not take it.
  Result<Progress> connected() const;

  int fd() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }
  Result<SocketAddress> local_address() const;
  Result<SocketAddress> peer_address() const;
  /// One waiting connection, or an invalid socket if there is none. Does not wait. An error says
  /// what ran out; the connection still waits.
  Result<Socket> accept() const;
  Result<void> send_all(std::span<const std::byte> bytes, Deadline deadline) const;
  Result<void> receive_exact(std::span<std::byte> bytes, Deadline deadline) const;
  /// What can be sent or received now: 0 if nothing. End of stream is Errc::peer_lost.
  Result<std::size_t> send_some(std::span<const std::byte> bytes) const;
  Result<std::size_t> receive_some(std::span<std::byte> bytes) const;
  /// Another host that vanishes is noticed after `give_up`, and is asked each `interval`.
  void keep_alive(Duration interval, Duration give_up) const noexcept;

 private:
  static Result<Socket> connect_until(const SocketAddress& address, Deadline deadline,
                                      bool refusal_is_final);
  int fd_ = -1;
};

}  // namespace gdrx
