// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/secure_socket.hpp"

#include <poll.h>

namespace gdrx {

Result<SecureSocket> SecureSocket::client(Socket socket, std::string identity, const Key& key) {
  return SecureSocket(std::move(socket), GDRX_TRY(TlsSession::client(std::move(identity), key)));
}

Result<SecureSocket> SecureSocket::server(Socket socket, TlsSession::FindKey find) {
  return SecureSocket(std::move(socket), GDRX_TRY(TlsSession::server(std::move(find))));
}

SecureSocket SecureSocket::client_here(Socket socket, std::string identity, const Key& key) {
  return SecureSocket(std::move(socket), TlsSession::client_here(std::move(identity), key));
}

SecureSocket SecureSocket::server_here(Socket socket, std::string identity, const Key& key) {
  return SecureSocket(std::move(socket), TlsSession::server_here(std::move(identity), key));
}

Result<std::size_t> SecureSocket::fill() {
  const auto space = session_.space();
  if (space.empty()) return 0;
  const std::size_t received = GDRX_TRY(socket_.receive_some(space));
  session_.received(received);
  heard_ += received;
  return received;
}

Result<Progress> SecureSocket::flush() {
  while (unsent()) {
    const std::size_t sent = GDRX_TRY(socket_.send_some(session_.unsent()));
    if (sent == 0) return Progress::pending;
    session_.sent(sent);
    said_ += sent;
  }
  return Progress::done;
}

Result<Progress> SecureSocket::handshake() {
  while (true) {
    auto progress = session_.handshake();
    auto flushed = flush();  // an error of ours is news for the peer
    if (!progress) return progress;
    GDRX_TRY(std::move(flushed));
    if (*progress == Progress::done) return progress;
    if (GDRX_TRY(fill()) == 0) return Progress::pending;
  }
}

Result<void> SecureSocket::handshake(Deadline deadline) {
  Waits waits(fd(), deadline, "a TLS handshake");
  while (GDRX_TRY(handshake()) == Progress::pending) {
    const short events = static_cast<short>(POLLIN | (unsent() ? POLLOUT : 0));
    GDRX_TRY(waits.wait(events));
  }
  return {};
}

Result<std::size_t> SecureSocket::send_some(std::span<const std::byte> bytes) {
  if (!established() && GDRX_TRY(handshake()) == Progress::pending) return 0;
  std::size_t taken = 0;
  while (true) {
    const std::size_t some = GDRX_TRY(session_.write(bytes.subspan(taken)));
    taken += some;
    if (GDRX_TRY(flush()) == Progress::pending || some == 0) return taken;
  }
}

Result<std::size_t> SecureSocket::receive_some(std::span<std::byte> bytes) {
  if (!established() && GDRX_TRY(handshake()) == Progress::pending) return 0;
  while (true) {
    const std::size_t got = GDRX_TRY(session_.read(bytes));
    if (got > 0) return got;
    if (GDRX_TRY(fill()) == 0) return 0;
  }
}

Result<void> SecureSocket::send_all(std::span<const std::byte> bytes, Deadline deadline) {
  GDRX_TRY(handshake(deadline));
  Waits waits(fd(), deadline, "room to send");
  while (!bytes.empty() || unsent()) {
    const std::size_t sent = GDRX_TRY(send_some(bytes));
    bytes = bytes.subspan(sent);
    if (unsent()) GDRX_TRY(waits.go_on(sent, POLLOUT));
  }
  return {};
}

Result<void> SecureSocket::receive_exact(std::span<std::byte> bytes, Deadline deadline) {
  GDRX_TRY(handshake(deadline));
  Waits waits(fd(), deadline, "an answer");
  while (!bytes.empty()) {
    const std::size_t received = GDRX_TRY(receive_some(bytes));
    bytes = bytes.subspan(received);
    GDRX_TRY(waits.go_on(received, POLLIN));
  }
  return {};
}

}  // namespace gdrx
