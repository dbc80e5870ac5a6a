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

#include "transport/bootstrap/fork.hpp"
#include "transport/bootstrap/socket_errors.hpp"

namespace gdrx {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kRetryConnect{20};
constexpr int kMostSkipped = 64;

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
  const int fd = Unforked::open([&] {
    return socket(address.family == 6 ? AF_INET6 : AF_INET,
                  SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  });
  if (fd < 0) return no_descriptor("socket", errno);
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

// One attempt: a socket, or why there is none yet; an error if there never will be one.
struct Attempt {
  Socket socket;
  int error = 0;
};

Result<Attempt> judge(Socket socket, const SocketAddress& address, int error) {
  if (error == 0 && talks_to_itself(socket)) error = ECONNREFUSED;
  if (error == 0) return Attempt{std::move(socket), 0};
  if (connect_may_pass(error)) return Attempt{Socket(), error};
  return fail(Errc::system, "connect to " + to_string(address), error);
}

Result<Attempt> try_connect(const SocketAddress& address, Deadline deadline) {
  Socket socket = GDRX_TRY(open_socket(address));
  const KernelAddress to = to_kernel(address);
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&to.storage), to.length) == 0) {
    return judge(std::move(socket), address, 0);
  }
  if (errno != EINPROGRESS) return judge(std::move(socket), address, errno);
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
  return judge(std::move(socket), address, error);
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

Socket::Socket(int fd) noexcept : fd_(fd) { Unforked::keep(fd); }

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Socket::~Socket() { Unforked::close(fd_); }

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
              fmt::format("every port of GDRX_PORT_RANGE={}-{} is in use here: a rank needs three "
                          "while it starts, and one for each connection of NCCL that it accepts",
                          ports.first, ports.last),
              EADDRINUSE);
}

Result<Socket> Socket::connect(const SocketAddress& address, Deadline deadline) {
  return connect_until(address, deadline, false);
}

Result<Socket> Socket::connect_again(const SocketAddress& address, Deadline deadline) {
  return connect_until(address, deadline, true);
}

Result<Socket> Socket::connect_until(const SocketAddress& address, Deadline deadline,
                                     bool refusal_is_final) {
  while (true) {
    Attempt attempt = GDRX_TRY(try_connect(address, deadline));
    if (attempt.socket.valid()) return std::move(attempt.socket);
    if (refusal_is_final && attempt.error == ECONNREFUSED) {
      return fail(Errc::peer_lost, to_string(address) + " listens no more", attempt.error);
    }
    if (deadline.passed(steady_clock().now())) {
      return fail(
          Errc::timeout,
          fmt::format("{} {} connections: is the other side running, and its port reachable?",
                      to_string(address), attempt.error == ECONNREFUSED ? "refuses" : "takes no"),
          attempt.error);
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
  // Each error that is skipped takes its connection off the queue; the bound is against surprises.
  for (int i = 0; i < kMostSkipped; ++i) {
    const int fd = Unforked::open(
        [&] { return accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
    if (fd >= 0) {
      Socket accepted(fd);
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return accepted;
    }
    if (errno == EAGAIN) return Socket();
    if (!accept_next(errno)) break;
  }
  return no_descriptor("accept", errno);
}

Result<std::size_t> Socket::send_some(std::span<const std::byte> bytes) const {
  const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  // The connection lives where the kernel has no memory for it now.
  if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) return std::size_t{0};
  return fail(Errc::peer_lost, "the connection broke", errno);
}

Result<std::size_t> Socket::receive_some(std::span<std::byte> bytes) const {
  const ssize_t received = ::recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (received > 0) return static_cast<std::size_t>(received);
  if (received == 0) return fail(Errc::peer_lost, "the other side closed the connection");
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  return fail(Errc::peer_lost, "the connection broke", errno);
}

Result<void> Socket::send_all(std::span<const std::byte> bytes, Deadline deadline) const {
  Waits waits(fd_, deadline, "room to send");
  while (!bytes.empty()) {
    const std::size_t sent = GDRX_TRY(send_some(bytes));
    bytes = bytes.subspan(sent);
    GDRX_TRY(waits.go_on(sent, POLLOUT));
  }
  return {};
}

Result<void> Socket::receive_exact(std::span<std::byte> bytes, Deadline deadline) const {
  Waits waits(fd_, deadline, "an answer");
  while (!bytes.empty()) {
    const std::size_t received = GDRX_TRY(receive_some(bytes));
    bytes = bytes.subspan(received);
    GDRX_TRY(waits.go_on(received, POLLIN));
  }
  return {};
}

void Socket::keep_alive(Duration interval, Duration give_up) const noexcept {
  // One host does not vanish from itself. An overloaded one, though, has been seen to let its own
  // probes time out.
  const auto here = local_address();
  const auto there = peer_address();
  if (here && there && here->ip == there->ip) return;
  using std::chrono::seconds;
  const int on = 1;
  const int every = std::max(1, static_cast<int>(std::chrono::ceil<seconds>(interval).count()));
  const int give_up_ms = static_cast<int>(std::chrono::ceil<milliseconds>(give_up).count());
  const int probes = std::clamp(give_up_ms / 1000 / every, 2, 100);
  setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd_, IPPROTO_TCP, TCP_KEEPIDLE, &every, sizeof every);
  setsockopt(fd_, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
  setsockopt(fd_, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  setsockopt(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up_ms, sizeof give_up_ms);
}

}  // namespace gdrx
