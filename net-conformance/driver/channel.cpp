// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/driver/channel.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "net-conformance/driver/verdict.hpp"

namespace gdrx::conformance {

namespace {

int ms_of(Duration limit) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(limit).count());
}

bool ready(int fd, short what, Duration limit) {
  pollfd one{fd, what, 0};
  return poll(&one, 1, ms_of(limit)) == 1;
}

Channel no_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return Channel(fd);
}

}  // namespace

Channel::~Channel() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

Result<void> Channel::send_bytes(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put < 0 && errno != EINTR) {
      return blocked(std::string("the other process is gone: ") + std::strerror(errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(put, 0)));
  }
  return {};
}

Result<void> Channel::receive_bytes(std::span<std::byte> bytes, Duration limit) {
  const Deadline deadline = Deadline::after(steady_clock(), limit);
  while (!bytes.empty()) {
    if (!ready(fd_, POLLIN, deadline.left(steady_clock().now()))) {
      return blocked("the other process is late");
    }
    const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return blocked("the other process is gone");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  return {};
}

bool Channel::wait(Duration limit) const noexcept { return ready(fd_, POLLIN, limit); }

void Channel::half_close() noexcept { shutdown(fd_, SHUT_WR); }

Result<Server> Server::listen(int port) {
  const int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  Server server(port, listener);
  const int on = 1, off = 0;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 8) != 0) {
    return fail(Errc::system, "listen on port " + std::to_string(port), errno);
  }
  return server;
}

Result<Channel> Server::accept(Duration limit) {
  if (!socket_.wait(limit)) {
    return fail(Errc::timeout, "nobody connected to port " + std::to_string(port_));
  }
  const int fd = accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) {
    return fail(Errc::system, "accept", errno);
  }
  return no_delay(fd);
}

Result<Channel> serve(int port, Duration limit) {
  Server server = GDRX_TRY(Server::listen(port));
  return server.accept(limit);
}

Result<Channel> dial(const std::string& host_and_port, Duration limit) {
  const auto colon = host_and_port.rfind(':');
  if (colon == std::string::npos) {
    return fail(Errc::invalid_argument, "'" + host_and_port + "' is not HOST:PORT");
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string host = host_and_port.substr(0, colon), port = host_and_port.substr(colon + 1);
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return fail(Errc::system, host_and_port + ": " + gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &freeaddrinfo);
  const Deadline deadline = Deadline::after(steady_clock(), limit);
  int error = 0;
  while (!deadline.passed(steady_clock().now())) {
    const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, found->ai_addr, found->ai_addrlen) == 0) {
      return no_delay(fd);
    }
    error = errno;
    close(fd);
    const timespec nap{0, 100'000'000};  // the other side may not be up yet
    nanosleep(&nap, nullptr);
  }
  return fail(Errc::system, "connect to " + host_and_port, error);
}

}  // namespace gdrx::conformance
