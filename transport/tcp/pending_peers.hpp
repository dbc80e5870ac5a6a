// SPDX-License-Identifier: Apache-2.0
// The two kinds of connections that are none yet: one that the listener let in, and a call
// of ours.
#pragma once

#include <cstring>

#include "transport/tcp/door.hpp"

namespace gdrx::tcp {

/// Collects exactly one fixed message from a socket, never a byte more.
template <class T>
class Expected {
 public:
  Result<Progress> receive(const Socket& socket) {
    const auto rest = std::as_writable_bytes(std::span(&value_, 1)).subspan(got_);
    got_ += GDRX_TRY(socket.receive_some(rest));
    return got_ == sizeof value_ ? Progress::done : Progress::pending;
  }
  const T& value() const noexcept { return value_; }
  bool empty() const noexcept { return got_ == 0; }

 private:
  T value_;
  std::size_t got_ = 0;
};

/// A fresh socket has room for a greeting: that it has not is an error.
template <class T>
Result<void> send_whole(const Socket& socket, const T& message) {
  const std::size_t sent = GDRX_TRY(socket.send_some(std::as_bytes(std::span(&message, 1))));
  if (sent == sizeof message) return {};
  return fail(Errc::system, "a connection that takes no greeting");
}

/// One round of TLS's handshake over the socket.
Result<Progress> shake_hands(const Socket& socket, TlsSession& session);

std::unique_ptr<Door::PendingPeer> make_joining_peer(Door& door, Socket socket,
                                                     ServerHandshake handshake, Instant now);
std::unique_ptr<Door::PendingPeer> make_call(Door& door, const Address& to, Instant now);

}  // namespace gdrx::tcp
