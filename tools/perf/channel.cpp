// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/channel.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>

#include "transport/bootstrap/text.hpp"

namespace gdrx::perf {
namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::seconds kKeepAlive{5};
constexpr std::chrono::seconds kFarewell{2};
constexpr std::uint32_t kMostText = 16384;
constexpr char kWell = '+';
constexpr char kFailed = '-';

Result<SocketAddress> resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return fail(Errc::invalid_argument, fmt::format("{}: {}", host, gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &freeaddrinfo);
  SocketAddress address = GDRX_TRY(from_sockaddr(found->ai_addr));
  address.port = port;
  return address;
}

std::string shown(const std::string& text) { return printable(std::as_bytes(std::span(text))); }

}  // namespace

Channel::Channel(Socket socket) : socket_(std::move(socket)) {
  socket_.keep_alive(kKeepAlive);
  const auto address = socket_.peer_address();
  peer_ = address ? to_string(*address) : "the other host";
}

Result<Channel> Channel::connect(const std::string& host, std::uint16_t port) {
  const SocketAddress address = GDRX_TRY(resolve(host, port));
  return Channel(GDRX_TRY(Socket::connect(address, Deadline::after(steady_clock(), kPatience))));
}

Result<std::string> Channel::agree(const Result<std::string>& mine, Deadline deadline) const {
  std::string text = mine ? kWell + *mine : kFailed + describe(mine.error());
  text.resize(std::min<std::size_t>(text.size(), kMostText));
  const std::uint32_t length = htonl(static_cast<std::uint32_t>(text.size()));
  GDRX_TRY(socket_.send_all(std::as_bytes(std::span(&length, 1)), deadline));
  GDRX_TRY(socket_.send_all(std::as_bytes(std::span(text)), deadline));
  if (!mine) {
    // What is unread when a connection closes takes what was sent with it.
    const auto ignored = receive(Deadline::after(steady_clock(), kFarewell));
    static_cast<void>(ignored);
    return tl::unexpected(mine.error());
  }
  const std::string theirs = GDRX_TRY(receive(deadline));
  if (theirs[0] == kWell) return theirs.substr(1);
  return fail(Errc::peer_lost, "the other host: " + shown(theirs.substr(1)));
}

Result<std::string> Channel::receive(Deadline deadline) const {
  std::uint32_t coming = 0;
  GDRX_TRY(socket_.receive_exact(std::as_writable_bytes(std::span(&coming, 1)), deadline));
  coming = ntohl(coming);
  if (coming == 0 || coming > kMostText) {
    return fail(Errc::protocol, peer_ + " is no gdrx perf of this version");
  }
  std::string theirs(coming, '\0');
  GDRX_TRY(socket_.receive_exact(std::as_writable_bytes(std::span(theirs)), deadline));
  if (theirs[0] == kWell || theirs[0] == kFailed) return theirs;
  return fail(Errc::protocol, peer_ + " is no gdrx perf of this version");
}

Result<Listener> Listener::open(std::uint16_t port) {
  // An IPv6 socket takes IPv4, too; where the kernel has no IPv6, IPv4 it is.
  auto socket = Socket::listen({.family = 6, .port = port, .ip = {}});
  if (!socket && socket.error().native == EAFNOSUPPORT) {
    socket = Socket::listen({.family = 4, .port = port, .ip = {}});
  }
  if (!socket) return tl::unexpected(socket.error());
  const SocketAddress at = GDRX_TRY(socket->local_address());
  return Listener(*std::move(socket), at.port);
}

Result<Channel> Listener::accept() const {
  for (;;) {
    GDRX_TRY(wait_for(socket_.fd(), POLLIN, Deadline::never(), "a client"));
    Socket accepted = GDRX_TRY(socket_.accept());
    if (accepted.valid()) return Channel(std::move(accepted));
  }
}

}  // namespace gdrx::perf
