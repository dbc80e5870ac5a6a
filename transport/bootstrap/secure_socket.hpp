// SPDX-License-Identifier: Apache-2.0
// A socket whose bytes go through TLS from the first one on.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "transport/bootstrap/socket.hpp"
#include "transport/secure/tls_session.hpp"

namespace gdrx {

/// One thread at a time. Has a socket's calls, with two differences: what send_some() took may wait
/// here for the kernel's room (unsent()), and what receive_some() has not given may be here
/// although the descriptor is silent (pending()), unless it returned 0.
class SecureSocket {
 public:
  /// `identity` and `key`: see TlsSession. Sends nothing yet.
  static Result<SecureSocket> client(Socket socket, std::string identity, const Key& key);
  static Result<SecureSocket> server(Socket socket, TlsSession::FindKey find);
  /// Of a connection within this host: see host_socket.hpp and TlsSession.
  static SecureSocket client_here(Socket socket, std::string identity, const Key& key);
  static SecureSocket server_here(Socket socket, std::string identity, const Key& key);

  const Socket& socket() const noexcept { return socket_; }
  int fd() const noexcept { return socket_.fd(); }
  const std::string& identity() const noexcept { return session_.identity(); }
  bool established() const noexcept { return session_.established(); }

  /// What can be done of it now. Errc::protocol if the peer does not hold the key.
  Result<Progress> handshake();
  Result<void> handshake(Deadline deadline);

  /// How much of `bytes` was taken; 0 before the handshake is done.
  Result<std::size_t> send_some(std::span<const std::byte> bytes);
  /// Sends what waits here: done when nothing does.
  Result<Progress> flush();
  bool unsent() const noexcept { return !session_.unsent().empty(); }
  /// What lies behind the bytes that it says may be overwritten.
  Result<std::size_t> receive_some(std::span<std::byte> bytes);
  /// Bytes that have come so far, of whatever meaning.
  std::uint64_t heard() const noexcept { return heard_; }
  /// Bytes that the kernel has taken so far.
  std::uint64_t said() const noexcept { return said_; }
  bool pending() const noexcept { return session_.pending(); }
  Result<void> send_all(std::span<const std::byte> bytes, Deadline deadline);
  Result<void> receive_exact(std::span<std::byte> bytes, Deadline deadline);

 private:
  SecureSocket(Socket socket, TlsSession session)
      : socket_(std::move(socket)), session_(std::move(session)) {}
  /// Bytes that came; 0 if none are there, or none can be taken.
  Result<std::size_t> fill();

  Socket socket_;
  TlsSession session_;
  std::uint64_t heard_ = 0;
  std::uint64_t said_ = 0;
};

}  // namespace gdrx
