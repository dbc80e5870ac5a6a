// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/device.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "base/thread_cpus.hpp"
#include "transport/bootstrap/secret.hpp"
#include "transport/fabric/hearing.hpp"
#include "transport/tcp/endpoint.hpp"

namespace gdrx::tcp {
namespace {

// With more peers connected, one call asks which of them have something.
constexpr std::size_t kAskedDirectly = 2;
constexpr std::size_t kEvents = 64;
// Between looks at the door: while a call of ours is on its way, and otherwise.
constexpr std::chrono::microseconds kDoorCalling{20};
constexpr std::chrono::microseconds kDoorQuiet{500};
constexpr std::chrono::milliseconds kFinishTime{100};

}  // namespace

Result<std::shared_ptr<TcpDevice>> TcpDevice::create(Rank self, const Config& config,
                                                     const Log& log) {
  auto device = std::shared_ptr<TcpDevice>(new TcpDevice(self, log));
  GDRX_TRY(device->open(config));
  return device;
}

Result<void> TcpDevice::open(const Config& config) {
  identity_.key = GDRX_TRY(Key::random());
  identity_.plain = config.tcp_plain;
  const Secret secret = GDRX_TRY(Secret::load(config.secret_file));
  if (secret.given()) identity_.secret = GDRX_TRY(secret.job_key(Key()));
  epoll_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return fail(Errc::system, "epoll_create1", errno);
  door_ = GDRX_TRY(Door::open(identity_, config, *this));
  return {};
}

TcpDevice::~TcpDevice() {
  closing_ = true;
  while (!connected_.empty()) {
    Peer& peer = *connected_.back();
    say_goodbye(peer);
    hang_up(peer);
  }
}

// Without memory the peer sees the connection's end alone.
void TcpDevice::say_goodbye(Peer& peer) noexcept try {
  MessageHead bye;
  bye.kind = Kind::goodbye;
  const iovec part{&bye, sizeof bye};
  if (peer.outgoing.empty() && !peer.stream->has_unsent()) {
    (void)peer.stream->send(std::span(&part, 1));
  }
} catch (const std::bad_alloc&) {
}

Blob TcpDevice::address() const {
  Address address;
  address.rank = index(identity_.rank);
  address.at = door_->address();
  address.plain = identity_.plain ? 1 : 0;
  std::ranges::copy(identity_.key.bytes(), address.key.begin());
  const auto bytes = std::as_bytes(std::span(&address, 1));
  return Blob(bytes.begin(), bytes.end());
}

std::string TcpDevice::describe() const {
  return fmt::format("tcp over {}, {}; CUDA memory is staged", door_->interface(),
                     identity_.plain ? "in clear text" : "encrypted");
}

Result<std::unique_ptr<MemoryRegion>> TcpDevice::add_region(std::span<std::byte> memory,
                                                            Pages own) {
  const std::uint32_t id = GDRX_TRY(regions_.add(memory));
  return std::unique_ptr<MemoryRegion>(
      std::make_unique<TcpRegion>(shared_from_this(), id, std::move(own)));
}

Result<std::unique_ptr<MemoryRegion>> TcpDevice::register_memory(std::span<std::byte> memory,
                                                                 MemoryKind kind) {
  if (kind != MemoryKind::host) {
    return fail(Errc::unsupported, "the tcp fabric takes host memory; CUDA memory is staged");
  }
  return add_region(memory, {});
}

Result<std::unique_ptr<MemoryRegion>> TcpDevice::allocate_memory(std::size_t bytes) {
  Pages own = GDRX_TRY(Pages::map(bytes));
  const std::span<std::byte> memory = own.bytes();
  return add_region(memory, std::move(own));
}

void TcpDevice::end_region(std::uint32_t id) noexcept {
  const std::span<std::byte> bytes = regions_.bytes(id);
  for (Peer* peer : connected_) peer->incoming.forget(bytes);
  regions_.remove(id);
}

TcpRegion::~TcpRegion() { device_->end_region(id_); }
std::span<std::byte> TcpRegion::bytes() const noexcept { return device_->regions().bytes(id_); }

Blob TcpRegion::export_key() const {
  const RegionKey key = device_->regions().key(id_);
  const auto bytes = std::as_bytes(std::span(&key, 1));
  return Blob(bytes.begin(), bytes.end());
}

Peer& TcpDevice::peer(Rank rank) {
  auto& place = peers_[rank];
  if (!place) {
    place = std::make_unique<Peer>(rank);
    connected_.reserve(peers_.size());
    sending_.reserve(peers_.size());
    unread_.reserve(peers_.size());
  }
  return *place;
}

// Its knock had to show its own key, too, which is known by now.
Result<void> TcpDevice::check_tag(const Peer& peer) const {
  if (!peer.tag || !peer.address) return {};
  const Key theirs{std::span<const std::byte, Key::kBytes>(peer.address->key)};
  if (GDRX_TRY(tag_of(theirs, identity_.key)) == *peer.tag) return {};
  return fail(Errc::protocol,
              fmt::format("somebody else has connected as rank {}", index(peer.rank)));
}

Result<std::unique_ptr<Endpoint>> TcpDevice::connect(Rank rank,
                                                     std::span<const std::byte> address) {
  Address to;
  if (address.size() != sizeof to) return fail(Errc::protocol, "a peer without a tcp address");
  std::memcpy(&to, address.data(), sizeof to);
  if (to.magic != kMagic || to.rank != index(rank)) {
    return fail(Errc::protocol, fmt::format("rank {} sent no address of its own", index(rank)));
  }
  GDRX_TRY(Caller::create(identity_, to));  // of one mind about encryption
  Peer& to_peer = peer(rank);
  if (to_peer.error) return tl::unexpected(*to_peer.error);
  to_peer.address = to;
  GDRX_TRY(check_tag(to_peer));
  if (rank != identity_.rank) call_if_needed(to_peer);
  return std::unique_ptr<Endpoint>(std::make_unique<TcpEndpoint>(shared_from_this(), to_peer));
}

void TcpDevice::call_if_needed(Peer& peer) {
  const bool under_way = peer.stream || peer.calling || peer.joining;
  if (under_way || peer.error || !peer.address || closing_) return;
  (void)door_->call(*peer.address);
  peer.calling = true;
  next_door_ = {};
}

// Where both call, the lower rank's call is the one.
Verdict TcpDevice::judge(Rank from, const Nonce& tag) {
  Peer& caller = peer(from);
  if (caller.stream || caller.joining || caller.error) return Verdict::taken;
  if (caller.calling && index(identity_.rank) < index(from)) return Verdict::crossed;
  caller.tag = tag;
  if (!check_tag(caller)) return Verdict::taken;
  caller.joining = true;
  return Verdict::welcome;
}

void TcpDevice::left(Rank from) noexcept {
  Peer& caller = *peers_.at(from);  // judge() has made it
  caller.joining = false;
  try {
    call_if_needed(caller);
  } catch (const std::bad_alloc&) {
    lose(caller, no_memory());
  }
}

void TcpDevice::crossed(Rank rank) { peer(rank).calling = false; }

void TcpDevice::joined(Rank rank, Stream stream) {
  Peer& joins = peer(rank);
  if (joins.stream || joins.error) return;  // and the second one ends
  const bool crossed = joins.joining && joins.calling;
  joins.joining = joins.calling = false;
  if (crossed) door_->cancel(rank);
  joins.stream.emplace(std::move(stream));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &joins;
  epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, joins.stream->fd(), &event);
  connected_.push_back(&joins);
  send_soon(joins);
  read_on(joins);  // its first writes may have come with its last word of the handshake
}

void TcpDevice::unreachable(Rank rank, Error error) {
  Peer& lost = peer(rank);
  lost.calling = false;
  if (lost.stream || lost.joining) return;
  lose(lost, std::move(error));
}

void TcpDevice::hang_up(Peer& peer) noexcept {
  if (!peer.stream) return;
  epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, peer.stream->fd(), nullptr);
  peer.stream->close();
  peer.stream.reset();
  std::erase(connected_, &peer);
  std::erase(unread_, &peer);
  peer.unread = false;
}

// What it said before is handed out all the same.
void TcpDevice::end(Peer& peer, const Error& error) {
  hang_up(peer);
  peer.outgoing.drop(writes_);
  if (!peer.error) peer.error = error;
}

void TcpDevice::lose(Peer& peer, Error error) {
  if (peer.incoming.said_goodbye()) {
    return end(peer, {Errc::peer_lost, fmt::format("rank {} has left", index(peer.rank)), 0});
  }
  end(peer, error);
  if (!isolating_ && !error_) error_ = std::move(error);
}

void TcpDevice::send_soon(Peer& peer) noexcept {
  if (peer.sending || !peer.stream || (peer.outgoing.empty() && !peer.stream->has_unsent())) return;
  peer.sending = true;
  sending_.push_back(&peer);
}

void TcpDevice::send() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < sending_.size(); ++i) {
    Peer& peer = *sending_[i];
    if (peer.stream) {
      const auto sent = peer.outgoing.pump(*peer.stream, peer.rank, ready_, writes_);
      if (!sent) receive_from(peer);  // which finds what it said at last, and its end
    }
    peer.sending = peer.stream && (!peer.outgoing.empty() || peer.stream->has_unsent());
    if (peer.sending) sending_[kept++] = &peer;
  }
  sending_.resize(kept);
}

void TcpDevice::receive_from(Peer& peer) {
  if (!peer.stream) return;
  const auto received = peer.incoming.pump(*peer.stream, {regions_, ready_, isolating_});
  if (received && *received && hearing_ != nullptr) hearing_->hear(peer.rank);
  if (received && !peer.incoming.said_goodbye()) return read_on(peer);
  if (received) return lose(peer, {});
  Error error = received.error();
  if (error.code == Errc::peer_lost) {
    error.what = fmt::format("the connection to rank {} over tcp failed: {}", index(peer.rank),
                             gdrx::describe(received.error()));
    error.native = 0;
  }
  lose(peer, std::move(error));
}

void TcpDevice::read_on(Peer& peer) noexcept {
  if (peer.unread || !peer.stream || !peer.stream->has_unread()) return;
  peer.unread = true;
  unread_.push_back(&peer);
}

void TcpDevice::receive() {
  if (connected_.size() <= kAskedDirectly) {
    for (std::size_t i = connected_.size(); i-- > 0;) receive_from(*connected_[i]);
    return;
  }
  for (std::size_t left = unread_.size(); left > 0 && !unread_.empty(); --left) {
    Peer& peer = *unread_.front();
    unread_.erase(unread_.begin());
    peer.unread = false;
    receive_from(peer);
  }
  std::array<epoll_event, kEvents> events;
  const int count = epoll_wait(epoll_.fd(), events.data(), kEvents, 0);
  for (int i = 0; i < count; ++i) {
    receive_from(*static_cast<Peer*>(events[static_cast<std::size_t>(i)].data.ptr));
  }
}

void TcpDevice::move() {
  if (!sending_.empty()) send();
  if (!connected_.empty()) receive();
  const Instant now = steady_clock().now();
  if (now < next_door_) return;
  next_door_ = now + kDoorCalling;  // unless serve() asks for an earlier one
  door_->serve(now);
  if (door_->is_calling()) return;
  const Duration rest = connected_.empty() ? Duration() : door_->rest();  // nobody is held up
  next_door_ = now + std::max<Duration>(kDoorQuiet, rest);
}

Result<std::size_t> TcpDevice::poll(std::span<Completion> completions) {
  if (ready_.size() < completions.size()) move();
  const std::size_t count = ready_.take(completions);
  if (count == 0 && error_) return tl::unexpected(*error_);
  return count;
}

void TcpDevice::finish(Peer& peer) noexcept {
  const Deadline deadline = Deadline::after(steady_clock(), kFinishTime);
  const auto goes_on = [&] {
    return !peer.error && !error_ && !peer.outgoing.empty() && ready_.has_room() &&
           !deadline.passed(steady_clock().now());
  };
  try {
    while (goes_on()) move();
    if (peer.outgoing.empty()) return;
    // Its payloads go now: the peer would take what follows for the rest of a message.
    end(peer, {Errc::aborted, fmt::format("the endpoint to rank {} is gone", index(peer.rank)), 0});
  } catch (const std::bad_alloc&) {
    if (!peer.outgoing.empty()) end(peer, no_memory());
  }
}

}  // namespace gdrx::tcp
