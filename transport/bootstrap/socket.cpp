// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace gdrx {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kRetryConnect{20};

struct KernelAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

KernelAddress to_kernel(const SocketAddress& address) {
  KernelAddress out;
  if (address.family == 6) {
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(address.port);
    std::memcpy(&in6.sin6_addr, address.ip.data(), 16);
    std::memcpy(&out.storage, &in6, sizeof in6);
    out.length = sizeof in6;
  } else {
    sockaddr_in in4{};
    in4.sin_family = AF_INET;
    in4.sin_port = htons(address.port);
    std::memcpy(&in4.sin_addr, address.ip.data(), 4);
    std::memcpy(&out.storage, &in4, sizeof in4);
    out.length = sizeof in4;
  }
  return out;
}

Result<Socket> open_socket(const SocketAddress& address) {
  if (address.family != 4 && address.family != 6) {
    return fail(Errc::protocol,
                fmt::format("address family {} is neither 4 nor 6", address.family));
  }
  const int fd = socket(address.family == 6 ? AF_INET6 : AF_INET,
                        SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(Errc::system, "socket", errno);
  Socket made(fd);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return made;
}

// With nobody listening, a retry can draw the very port it dials and meet itself.
bool talks_to_itself(const Socket& socket) {
  const auto there = socket.peer_address();
  const auto here = socket.local_address();
  return there && here && *there == *here;
}

// One attempt: a socket, or an invalid one if the other side refused.
Result<Socket> try_connect(const SocketAddress& address, Deadline deadline) {
  Socket socket = GDRX_TRY(open_socket(address));
  const KernelAddress to = to_kernel(address);
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&to.storage), to.length) == 0) {
    return talks_to_itself(socket) ? Socket() : std::move(socket);
  }
  if (errno != EINPROGRESS && errno != ECONNREFUSED) {
    return fail(Errc::system, "connect to " + to_string(address), errno);
  }
  if (errno == ECONNREFUSED) return Socket();
  if (const auto ready = wait_for(socket.fd(), POLLOUT, deadline, "a connection"); !ready) {
    return fail(ready.error().code,
                fmt::format("{} does not answer: is its host up, and does a firewall let this port "
                            "through?",
                            to_string(address)),
                ready.error().native);
  }
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error == ECONNREFUSED || error == ECONNRESET) return Socket();
  if (error != 0) return fail(Errc::system, "connect to " + to_string(address), error);
  if (talks_to_itself(socket)) return Socket();
  return socket;
}

}  // namespace

std::string to_string(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = address.family == 6 ? AF_INET6 : AF_INET;
  inet_ntop(family, address.ip.data(), text.data(), text.size());
  return address.family == 6 ? fmt::format("[{}]:{}", text.data(), address.port)
                             : fmt::format("{}:{}", text.data(), address.port);
}

SocketAddress loopback_address() {
  SocketAddress address;
  address.family = 4;
  address.ip = {127, 0, 0, 1};
  return address;
}

Result<SocketAddress> from_sockaddr(const sockaddr* address) {
  SocketAddress out;
  if (address != nullptr && address->sa_family == AF_INET) {
    sockaddr_in in4{};
    std::memcpy(&in4, address, sizeof in4);
    out.family = 4;
    out.port = ntohs(in4.sin_port);
    std::memcpy(out.ip.data(), &in4.sin_addr, 4);
    return out;
  }
  if (address != nullptr && address->sa_family == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, address, sizeof in6);
    out.family = 6;
    out.port = ntohs(in6.sin6_port);
    std::memcpy(out.ip.data(), &in6.sin6_addr, 16);
    return out;
  }
  return fail(Errc::unsupported, "an address that is neither IPv4 nor IPv6");
}

int poll_milliseconds(Deadline deadline) noexcept {
  const Duration left = deadline.left(steady_clock().now());
  const auto ms = std::chrono::ceil<milliseconds>(left).count();
  return static_cast<int>(std::min<std::int64_t>(ms, 3'600'000));
}

Result<void> wait_for(int fd, short events, Deadline deadline, const char* what) {
  while (true) {
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, poll_milliseconds(deadline));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return fail(Errc::system, "poll", errno);
    if (deadline.passed(steady_clock().now())) {
      return fail(Errc::timeout, fmt::format("no answer in time while waiting for {}", what));
    }
  }
}

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

namespace {

Result<Socket> listen_at(const SocketAddress& address) {
  Socket socket = GDRX_TRY(open_socket(address));
  const int on = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const KernelAddress at = to_kernel(address);
  if (bind(socket.fd(), reinterpret_cast<const sockaddr*>(&at.storage), at.length) != 0) {
    return fail(Errc::system, "bind to " + to_string(address), errno);
  }
  if (::listen(socket.fd(), SOMAXCONN) != 0) return fail(Errc::system, "listen", errno);
  return socket;
}

}  // namespace

Result<Socket> Socket::listen(const SocketAddress& address, PortRange ports) {
  if (address.port != 0 || !ports.given()) return listen_at(address);
  SocketAddress at = address;
  const unsigned count = ports.last - ports.first + 1U;
  // Ranks of one host begin at different places.
  const unsigned begin = static_cast<unsigned>(getpid()) % count;
  for (unsigned i = 0; i < count; ++i) {
    at.port = static_cast<std::uint16_t>(ports.first + (begin + i) % count);
    auto socket = listen_at(at);
    if (socket || socket.error().native != EADDRINUSE) return socket;
  }
  return fail(Errc::system,
              fmt::format("every port of GDRX_PORT_RANGE={}-{} is in use here: a rank needs two "
                          "while it starts, and one for each connection of NCCL that it accepts",
                          ports.first, ports.last),
              EADDRINUSE);
}

Result<Socket> Socket::connect(const SocketAddress& address, Deadline deadline) {
  while (true) {
    Socket socket = GDRX_TRY(try_connect(address, deadline));
    if (socket.valid()) return socket;
    if (deadline.passed(steady_clock().now())) {
      return fail(Errc::timeout, fmt::format("{} refuses connections: is the other side running, "
                                             "and its port reachable?",
                                             to_string(address)));
    }
    std::this_thread::sleep_for(
        std::min<Duration>(kRetryConnect, deadline.left(steady_clock().now())));
  }
}

Result<Socket> Socket::begin_connect(const SocketAddress& address) {
  Socket socket = GDRX_TRY(open_socket(address));
  const KernelAddress to = to_kernel(address);
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&to.storage), to.length) != 0 &&
      errno != EINPROGRESS) {
    return fail(Errc::peer_lost, "connect to " + to_string(address), errno);
  }
  return socket;
}

Result<Progress> Socket::connected() const {
  pollfd entry{fd_, POLLOUT, 0};
  if (poll(&entry, 1, 0) <= 0) return Progress::pending;
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0)
    return fail(Errc::peer_lost, "the other side does not take the connection", error);
  if (talks_to_itself(*this)) return fail(Errc::peer_lost, "nobody listens at that address");
  return Progress::done;
}

Result<SocketAddress> Socket::peer_address() const {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&peer), &length) != 0) {
    return fail(Errc::system, "getpeername", errno);
  }
  return from_sockaddr(reinterpret_cast<const sockaddr*>(&peer));
}

Result<SocketAddress> Socket::local_address() const {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&storage), &length) != 0) {
    return fail(Errc::system, "getsockname", errno);
  }
  return from_sockaddr(reinterpret_cast<const sockaddr*>(&storage));
}

Result<Socket> Socket::accept() const {
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) {
    Socket accepted(fd);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return accepted;
  }
  // A client that has gone again is not our trouble.
  if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return Socket();
  return fail(Errc::system, "accept", errno);
}

Result<std::size_t> Socket::send_some(std::span<const std::byte> bytes) const noexcept {
  const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  return fail(Errc::peer_lost, "the connection broke", errno);
}

Result<std::size_t> Socket::receive_some(std::span<std::byte> bytes) const noexcept {
  const ssize_t received = ::recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (received > 0) return static_cast<std::size_t>(received);
  if (received == 0) return fail(Errc::peer_lost, "the other side closed the connection");
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  return fail(Errc::peer_lost, "the connection broke", errno);
}

Result<void> Socket::send_all(std::span<const std::byte> bytes, Deadline deadline) const {
  while (!bytes.empty()) {
    const std::size_t sent = GDRX_TRY(send_some(bytes));
    bytes = bytes.subspan(sent);
    if (sent == 0) GDRX_TRY(wait_for(fd_, POLLOUT, deadline, "room to send"));
  }
  return {};
}

Result<void> Socket::receive_exact(std::span<std::byte> bytes, Deadline deadline) const {
  while (!bytes.empty()) {
    const std::size_t received = GDRX_TRY(receive_some(bytes));
    bytes = bytes.subspan(received);
    if (received == 0) GDRX_TRY(wait_for(fd_, POLLIN, deadline, "an answer"));
  }
  return {};
}

void Socket::keep_alive(Duration interval) const noexcept {
  // One host does not vanish from itself. An overloaded one, though, has been seen to let its own
  // probes time out.
  const auto here = local_address();
  const auto there = peer_address();
  if (here && there && here->ip == there->ip) return;
  const int on = 1;
  const int seconds =
      std::max(1, static_cast<int>(std::chrono::ceil<std::chrono::seconds>(interval).count()));
  const int probes = 2;
  const int give_up_ms = 3 * 1000 * seconds;
  setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd_, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  setsockopt(fd_, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
  setsockopt(fd_, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  setsockopt(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up_ms, sizeof give_up_ms);
}

}  // namespace gdrx
