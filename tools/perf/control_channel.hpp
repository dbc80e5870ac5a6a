// SPDX-License-Identifier: Apache-2.0
// Two processes in step over TLS: each says how it went, and what the other has to know, and gets
// the same of the other. One thread.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "transport/bootstrap/secret.hpp"
#include "transport/bootstrap/secure_socket.hpp"

namespace gdrx::perf {

class Channel {
 public:
  /// To a name or an address. Tries for some seconds while nobody listens there yet. Errc::protocol
  /// where the secret is not the same on both sides, or who listens is reached through somebody
  /// else: the key is of the listener's address. Without a secret the key is known to everybody:
  /// then a listener on the wire learns nothing, and who stands in its middle all.
  static Result<Channel> connect(const std::string& host, std::uint16_t port,
                                 const Secret& secret = {});

  /// Both call it equally often. Errors: mine, if it is one, else the peer's with "the other host"
  /// before it, Errc::protocol, Errc::peer_lost, Errc::timeout.
  Result<std::string> agree(const Result<std::string>& mine, Deadline deadline) const;
  /// The other's address, for people.
  const std::string& peer() const noexcept { return peer_; }

 private:
  friend class Listener;
  explicit Channel(SecureSocket socket);
  Result<std::string> receive(Deadline deadline) const;  // never empty
  std::unique_ptr<SecureSocket> socket_;
  std::string peer_;
};

class Listener {
 public:
  /// On one interface. Port 0: one of `ports`, or the kernel chooses.
  static Result<Listener> open(const SocketAddress& at, const Secret& secret = {},
                               PortRange ports = {});
  std::uint16_t port() const noexcept { return address_.port; }
  const SocketAddress& address() const noexcept { return address_; }
  /// The first that shows the key. Each has 10 s for it, all at the same time; the others are
  /// forgotten. Errc::timeout at the deadline.
  Result<Channel> accept(Deadline deadline = Deadline::never());

 private:
  struct PendingPeer {
    SecureSocket socket;
    Instant since;
  };
  Listener(Socket socket, const SocketAddress& address, const Key& key)
      : socket_(std::move(socket)), address_(address), key_(key) {}
  Result<void> let_in();
  void wait(Deadline deadline) const;

  Socket socket_;
  SocketAddress address_;
  Key key_;
  std::list<PendingPeer> pending_;  // in the order of their coming
};

}  // namespace gdrx::perf
