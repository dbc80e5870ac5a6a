// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/door.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "transport/bootstrap/interface.hpp"
#include "transport/tcp/pending_peers.hpp"

namespace gdrx::tcp {
namespace {

constexpr std::chrono::milliseconds kLook{20};  // between looks at the clocks of pending peers
constexpr std::size_t kUsualPending = 64;
// In one serve(): a hundred microseconds.
constexpr int kMostAccepted = 4;
constexpr std::size_t kDoorEvents = 8;
// Of what strangers took, and at most so long: a turn may have been long because another process
// ran.
constexpr int kRest = 49;
constexpr std::chrono::milliseconds kLongestRest{10};

}  // namespace

Result<std::unique_ptr<Door>> Door::open(const Identity& self, const Config& config, Host& host) {
  auto door = std::unique_ptr<Door>(new Door(self, host, config.init_timeout));
  Interface interface = GDRX_TRY(choose_interface(list_interfaces(), config.socket_ifname));
  interface.address.port = 0;
  door->listener_ = GDRX_TRY(Socket::listen(interface.address, config.port_range));
  door->address_ = GDRX_TRY(door->listener_.local_address());
  door->interface_ = interface.name;
  door->epoll_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  if (!door->epoll_.valid()) return fail(Errc::system, "epoll_create1", errno);
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(door->epoll_.fd(), EPOLL_CTL_ADD, door->listener_.fd(), &event) != 0) {
    return fail(Errc::system, "epoll_ctl", errno);
  }
  door->pending_.reserve(kUsualPending);
  return door;
}

Door::Door(const Identity& self, Host& host, Duration patience)
    : self_(self), host_(host), patience_(patience), admission_(kMostAccepted) {}
Door::~Door() = default;

void Door::watch(PendingPeer& pending, bool for_writing) noexcept {
  epoll_event event{};
  event.events = for_writing ? EPOLLOUT : EPOLLIN;
  event.data.ptr = &pending;
  if (epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, pending.fd(), &event) == 0 || errno != EEXIST) return;
  epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, pending.fd(), &event);
}

void Door::unwatch(int fd) noexcept {
  if (fd >= 0) epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, fd, nullptr);
}

Result<void> Door::call(const Address& to) {
  const Instant now = steady_clock().now();
  pending_.push_back(make_call(*this, to, now));
  ++calls_;
  next_look_ = now;
  return {};
}

void Door::cancel(Rank peer) {
  for (const auto& pending : pending_) {
    if (pending->is_call_to(peer)) gone_.push_back(pending.get());
  }
}

// A pending peer whose step throws is gone: it may have given away half of what it had.
template <class Step>
void Door::let(PendingPeer* pending, Step step) {
  gone_.push_back(pending);
  try {
    if (step(*pending) == PendingPeer::Next::stay) {
      gone_.erase(std::find(gone_.begin(), gone_.end(), pending));
    }
  } catch (const std::bad_alloc&) {
    pending->lost();
    throw;
  }
}

// Returns the time of those who are no strangers, or are none any more.
Duration Door::handle(std::span<const epoll_event> events, Instant now) {
  Duration honest{};
  for (const epoll_event& event : events) {
    auto* pending = static_cast<PendingPeer*>(event.data.ptr);
    if (pending == nullptr) continue;  // the listener
    if (std::find(gone_.begin(), gone_.end(), pending) != gone_.end()) continue;
    const Instant begin = steady_clock().now();
    let(pending, [&](PendingPeer& one) { return one.step(now); });
    if (!pending->is_stranger()) honest += steady_clock().now() - begin;
  }
  return honest;
}

void Door::serve(Instant now) {
  sweep();  // whose step threw
  std::array<epoll_event, kDoorEvents> events;
  const int count = epoll_wait(epoll_.fd(), events.data(), kDoorEvents, 0);
  rest_ = {};
  if (count > 0) {
    const auto came = std::span(events).first(static_cast<std::size_t>(count));
    const Duration honest = handle(came, now);
    sweep();  // before somebody is put out
    if (std::ranges::any_of(came, [](const auto& one) { return one.data.ptr == nullptr; })) {
      accept(now);
    }
    rest_ = std::min<Duration>(kRest * (steady_clock().now() - now - honest), kLongestRest);
  }
  if (now < next_look_) return;
  next_look_ = now + kLook;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    let(pending_[i].get(), [&](PendingPeer& one) { return one.look_at_clock(now); });
  }
  sweep();
}

void Door::sweep() {
  // The end of one may ask for another call, which comes at the end of pending_.
  while (!gone_.empty()) {
    PendingPeer* gone = gone_.back();
    gone_.pop_back();
    const auto place = std::find_if(pending_.begin(), pending_.end(),
                                    [&](const auto& one) { return one.get() == gone; });
    if (place == pending_.end()) continue;
    const std::unique_ptr<PendingPeer> ends = std::move(*place);
    pending_.erase(place);
    unwatch(ends->fd());
    calls_ = static_cast<std::size_t>(std::count_if(
        pending_.begin(), pending_.end(), [](const auto& one) { return one->is_call(); }));
  }
}

void Door::accept(Instant now) {
  admission_.turn(
      listener_, [this] { return pending_.size() - calls_; },
      [this] {
        return put_out_a_stranger(pending_, [](const auto& one) { return one->silent_since(); });
      },
      [&](Socket socket) {
        auto handshake = ServerHandshake::create(self_);
        if (!handshake || !send_whole(socket, handshake->challenge())) return;
        pending_.push_back(make_joining_peer(*this, std::move(socket), std::move(*handshake), now));
        watch(*pending_.back(), false);
      });
}

}  // namespace gdrx::tcp
