// SPDX-License-Identifier: Apache-2.0
// Two processes in step over TCP: each says how it went, and what the other has to know, and gets
// the same of the other. One thread.
#pragma once

#include <string>

#include "transport/bootstrap/socket.hpp"

namespace gdrx::perf {

class Channel {
 public:
  /// To a name or an address. Tries for some seconds while nobody listens there yet.
  static Result<Channel> connect(const std::string& host, std::uint16_t port);

  /// Both call it equally often. Errors: mine, if it is one, else the peer's with "the other host"
  /// before it, Errc::protocol, Errc::peer_lost, Errc::timeout.
  Result<std::string> agree(const Result<std::string>& mine, Deadline deadline) const;
  /// The other's address, for people.
  const std::string& peer() const noexcept { return peer_; }

 private:
  friend class Listener;
  explicit Channel(Socket socket);
  Result<std::string> receive(Deadline deadline) const;  // never empty
  Socket socket_;
  std::string peer_;
};

class Listener {
 public:
  /// On every interface. Port 0: the kernel chooses one.
  static Result<Listener> open(std::uint16_t port);
  std::uint16_t port() const noexcept { return port_; }
  Result<Channel> accept() const;  // waits as long as it takes

 private:
  Listener(Socket socket, std::uint16_t port) : socket_(std::move(socket)), port_(port) {}
  Socket socket_;
  std::uint16_t port_;
};

}  // namespace gdrx::perf
