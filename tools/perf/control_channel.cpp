// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/control_channel.hpp"
#include "base/printable.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace gdrx::perf {
namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr std::size_t kMostPending = 256;
constexpr std::string_view kIdentity = "gdrx-perf-2";
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

// Of one place, so that nobody can pass a greeting on to another one.
Result<Key> key_of(const Secret& secret, const SocketAddress& listener) {
  return derive(GDRX_TRY(secret.job_key(Key())), "gdrx perf",
                KeyContext().add(to_string(listener)));
}

std::string shown(const std::string& text) { return printable(text); }

}  // namespace

Channel::Channel(SecureSocket socket) : socket_(std::make_unique<SecureSocket>(std::move(socket))) {
  socket_->socket().keep_alive(kKeepAlive, 3 * kKeepAlive);
  const auto address = socket_->socket().peer_address();
  peer_ = address ? to_string(*address) : "the other host";
}

Result<Channel> Channel::connect(const std::string& host, std::uint16_t port,
                                 const Secret& secret) {
  const SocketAddress address = GDRX_TRY(resolve(host, port));
  const Deadline deadline = Deadline::after(steady_clock(), kPatience);
  const Key key = GDRX_TRY(key_of(secret, address));
  Socket raw = GDRX_TRY(Socket::connect(address, deadline));
  auto socket = GDRX_TRY(SecureSocket::client(std::move(raw), std::string(kIdentity), key));
  if (const auto shaken = socket.handshake(deadline); !shaken) {
    return fail(shaken.error().code,
                fmt::format("{} does not hold the same key: is it a gdrx perf --listen of this "
                            "version, and GDRX_SECRET_FILE the same on both hosts? ({})",
                            to_string(address), shaken.error().what));
  }
  return Channel(std::move(socket));
}

Result<std::string> Channel::agree(const Result<std::string>& mine, Deadline deadline) const {
  std::string text = mine ? kWell + *mine : kFailed + describe(mine.error());
  text.resize(std::min<std::size_t>(text.size(), kMostText));
  const std::uint32_t length = htonl(static_cast<std::uint32_t>(text.size()));
  GDRX_TRY(socket_->send_all(std::as_bytes(std::span(&length, 1)), deadline));
  GDRX_TRY(socket_->send_all(std::as_bytes(std::span(text)), deadline));
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
  GDRX_TRY(socket_->receive_exact(std::as_writable_bytes(std::span(&coming, 1)), deadline));
  coming = ntohl(coming);
  if (coming == 0 || coming > kMostText) {
    return fail(Errc::protocol, peer_ + " is no gdrx perf of this version");
  }
  std::string theirs(coming, '\0');
  GDRX_TRY(socket_->receive_exact(std::as_writable_bytes(std::span(theirs)), deadline));
  if (theirs[0] == kWell || theirs[0] == kFailed) return theirs;
  return fail(Errc::protocol, peer_ + " is no gdrx perf of this version");
}

Result<Listener> Listener::open(const SocketAddress& at, const Secret& secret, PortRange ports) {
  Socket socket = GDRX_TRY(Socket::listen(at, ports));
  const SocketAddress address = GDRX_TRY(socket.local_address());
  const Key key = GDRX_TRY(key_of(secret, address));
  return Listener(std::move(socket), address, key);
}

Result<Channel> Listener::accept(Deadline deadline) {
  while (!deadline.passed(steady_clock().now())) {
    wait(deadline);
    GDRX_TRY(let_in());
    const Instant now = steady_clock().now();
    for (auto pending = pending_.begin(); pending != pending_.end();) {
      const auto shaken = pending->socket.handshake();
      if (shaken && *shaken == Progress::done) {
        Channel channel(std::move(pending->socket));
        pending_.erase(pending);
        return channel;
      }
      pending = !shaken || now - pending->since > kPatience ? pending_.erase(pending)
                                                            : std::next(pending);
    }
  }
  return fail(Errc::timeout, "nobody came who holds the key");
}

void Listener::wait(Deadline deadline) const {
  std::vector<pollfd> entries{{socket_.fd(), POLLIN, 0}};
  for (const PendingPeer& pending : pending_) entries.push_back({pending.socket.fd(), POLLIN, 0});
  const int longest = pending_.empty() ? 60'000 : 1000;
  poll(entries.data(), entries.size(), std::min(longest, poll_milliseconds(deadline)));
}

Result<void> Listener::let_in() {
  while (pending_.size() < kMostPending) {
    Socket fresh = GDRX_TRY(socket_.accept());
    if (!fresh.valid()) return {};
    const auto find = [key = key_](std::string_view identity) {
      return identity == kIdentity ? std::optional<Key>(key) : std::nullopt;
    };
    pending_.push_back(
        {GDRX_TRY(SecureSocket::server(std::move(fresh), find)), steady_clock().now()});
  }
  return {};
}

}  // namespace gdrx::perf
