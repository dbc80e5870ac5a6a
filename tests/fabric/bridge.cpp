// SPDX-License-Identifier: Apache-2.0
#include "tests/fabric/bridge.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gdrx::sim {
namespace {

constexpr int kMostHosts = 255;
constexpr std::uint32_t kMostPayload = 1U << 30;  // what the simulated NICs take at once

/// A name of the abstract namespace: it is gone with the process that has bound it.
struct Name {
  sockaddr_un address{};
  socklen_t length = 0;
  Name(const std::string& network, int host) {
    const std::string text = fmt::format("gdrx-sim/{}/{}", network, host);
    address.sun_family = AF_UNIX;
    const std::size_t bytes = std::min(text.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, text.data(), bytes);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&address); }
};

int stream_socket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

bool same_user(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

}  // namespace

Result<std::unique_ptr<Bridge>> Bridge::create(std::string network, Take take) {
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return fail(Errc::system, "eventfd", errno);
  std::unique_ptr<Bridge> made(new Bridge(std::move(network), std::move(take), wake));
  made->thread_ = std::thread([bridge = made.get()] { bridge->run(); });
  return made;
}

Bridge::~Bridge() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  (void)eventfd_write(wake_, 1);
  thread_.join();
  for (const auto& [host, fd] : listeners_) close(fd);
  for (const int fd : unheard_) close(fd);
  for (const auto& [host, to] : outgoing_) close(to.fd);
  close(wake_);
}

Result<int> Bridge::claim() {
  for (int host = 0; host < kMostHosts; ++host) {
    const int fd = stream_socket();
    if (fd < 0) return fail(Errc::system, "socket", errno);
    const Name name(network_, host);
    if (bind(fd, name.get(), name.length) == 0 && listen(fd, kMostHosts) == 0) {
      const std::lock_guard lock(mutex_);
      listeners_[host] = fd;
      (void)eventfd_write(wake_, 1);
      return host;
    }
    const int error = errno;
    close(fd);
    if (error != EADDRINUSE) return fail(Errc::system, "bind", error);
  }
  return fail(Errc::unsupported,
              fmt::format("the simulated network '{}' has {} hosts already", network_, kMostHosts));
}

void Bridge::release(int host) {
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(host);
  if (found == listeners_.end()) return;
  unheard_.push_back(found->second);
  listeners_.erase(found);
  (void)eventfd_write(wake_, 1);
}

// With the lock.
Bridge::Outgoing* Bridge::reach(int host) {
  if (const auto found = outgoing_.find(host); found != outgoing_.end()) return &found->second;
  const int fd = stream_socket();
  if (fd < 0) return nullptr;
  const Name name(network_, host);
  if (connect(fd, name.get(), name.length) != 0 || !same_user(fd)) {
    close(fd);
    return nullptr;
  }
  Outgoing& made = outgoing_[host];
  made.fd = fd;
  return &made;
}

// False: the other end is gone.
bool Bridge::flush(Outgoing& to) {
  std::byte nothing{};  // comes this way
  if (to.waiting.empty() && recv(to.fd, &nothing, 1, MSG_DONTWAIT) == 0) return false;
  while (!to.waiting.empty()) {
    const std::vector<std::byte>& first = to.waiting.front();
    const ssize_t sent =
        ::send(to.fd, first.data() + to.sent, first.size() - to.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    to.sent += static_cast<std::size_t>(sent);
    if (to.sent < first.size()) continue;
    to.waiting.pop_front();
    to.sent = 0;
  }
  return true;
}

void Bridge::send(const Frame& frame, const std::vector<std::byte>& payload) {
  std::vector<std::byte> bytes(sizeof frame + payload.size());
  std::memcpy(bytes.data(), &frame, sizeof frame);
  if (!payload.empty()) {
    std::memcpy(bytes.data() + sizeof frame, payload.data(), payload.size());
  }
  const std::lock_guard lock(mutex_);
  const int host = frame.to[14];
  Outgoing* to = reach(host);
  if (to == nullptr) return;
  to->waiting.push_back(std::move(bytes));
  if (!flush(*to)) {
    close(to->fd);
    outgoing_.erase(host);
  } else if (!to->waiting.empty()) {
    (void)eventfd_write(wake_, 1);
  }
}

// False: the other end is gone, or says what no bridge does.
bool Bridge::read(Incoming& from) {
  while (true) {
    const bool in_frame = from.got < sizeof from.frame;
    std::byte* to = in_frame ? reinterpret_cast<std::byte*>(&from.frame) + from.got
                             : from.payload.data() + (from.got - sizeof from.frame);
    const std::size_t want = in_frame ? sizeof from.frame - from.got
                                      : sizeof from.frame + from.payload.size() - from.got;
    const ssize_t got = recv(from.fd, to, want, MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    from.got += static_cast<std::size_t>(got);
    if (from.got == sizeof from.frame) {
      if (from.frame.magic != Frame{}.magic || from.frame.payload > kMostPayload) return false;
      from.payload.resize(from.frame.payload);
    }
    if (from.got == sizeof from.frame + from.payload.size()) {
      take_(from.frame, std::move(from.payload));
      from.payload = {};
      from.got = 0;
    }
  }
}

void Bridge::accept_on(int host, int listener, std::vector<Incoming>& into) {
  for (int fd = 0; (fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
    if (same_user(fd)) {
      Incoming& made = into.emplace_back();
      made.fd = fd;
      made.host = host;
    } else {
      close(fd);
    }
  }
}

void Bridge::flush_all() {
  const std::lock_guard lock(mutex_);
  for (auto at = outgoing_.begin(); at != outgoing_.end();) {
    const bool alive = flush(at->second);
    if (!alive) close(at->second.fd);
    at = alive ? std::next(at) : outgoing_.erase(at);
  }
}

void Bridge::run() {
  std::vector<Incoming> incoming;
  while (true) {
    std::vector<pollfd> polled{{wake_, POLLIN, 0}};
    std::map<int, int> listeners;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) break;
      for (const int fd : unheard_) close(fd);
      unheard_.clear();
      listeners = listeners_;
      for (const auto& [host, to] : outgoing_) {
        polled.push_back({to.fd, static_cast<short>(to.waiting.empty() ? 0 : POLLOUT), 0});
      }
    }
    for (const auto& [host, fd] : listeners) polled.push_back({fd, POLLIN, 0});
    for (const Incoming& from : incoming) polled.push_back({from.fd, POLLIN, 0});
    (void)poll(polled.data(), polled.size(), -1);
    eventfd_t woken = 0;
    (void)eventfd_read(wake_, &woken);
    for (const auto& [host, fd] : listeners) accept_on(host, fd, incoming);
    std::erase_if(incoming, [&](Incoming& from) {
      if (listeners.contains(from.host) && read(from)) return false;
      close(from.fd);
      return true;
    });
    flush_all();
  }
  for (const Incoming& from : incoming) close(from.fd);
}

}  // namespace gdrx::sim
