// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/mesh_wire.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "transport/bootstrap/notice.hpp"
#include "transport/bootstrap/socket_errors.hpp"

namespace gdrx {
namespace {

constexpr int kPiecesAtOnce = 1024;  // a link that never stops talking does not keep the thread
constexpr std::size_t kMostWaiting = 64;  // data frames of one peer: more than rounds of any n
constexpr std::chrono::milliseconds kGoodbyeTime{200};

constexpr int kFewestBeats = 3;     // of silence, however short it may be
constexpr int kPatienceOfTcp = 20;  // times the silence; by then the beats have decided

}  // namespace

MeshWire::MeshWire(MeshLinks links, Rank self, Duration heartbeat, Duration silence)
    : links_(std::move(links.links)),
      members_(std::move(links.members)),
      self_(self),
      heartbeat_(heartbeat),
      silence_(silence) {}

const MeshLink& MeshWire::link_to(std::int32_t peer) const {
  return *std::find_if(links_.begin(), links_.end(),
                       [peer](const MeshLink& link) { return link.peer == peer; });
}

MeshLink& MeshWire::link_to(std::int32_t peer) {
  return const_cast<MeshLink&>(std::as_const(*this).link_to(peer));
}

std::optional<MeshWire::Heard> MeshWire::pump() {
  std::optional<Heard> told;
  std::optional<Heard> judged;
  for (MeshLink& link : links_) {
    if (link.left) continue;
    auto notice = link.cut ? std::nullopt : read(link);
    if (!notice && !link.left) notice = look_at_process(link);
    if (!notice && !link.left) notice = look_for_silence(link);
    if (!notice) continue;
    auto& first = notice->origin == self_ ? judged : told;
    if (!first) first = Heard{std::move(*notice), link.peer};
  }
  return told ? told : judged;
}

// What came before the end of a stream is drained before its end is judged, what an earlier call
// left in the reader, too.
std::optional<Notice> MeshWire::read(MeshLink& link) {
  std::array<std::byte, 16384> piece;
  for (int i = 0; i < kPiecesAtOnce; ++i) {
    if (auto notice = drain(link)) return notice;
    if (link.left || link.inbox.size() > kMostWaiting) return {};
    const auto received = receive(link, piece);
    if (!received && received.error().code == Errc::protocol) {
      return misbehaved(link, received.error().what);
    }
    if (!received) return ended(link, received.error());
    if (*received == 0) return {};
    link.missed = 0;
    link.reader.feed(std::span(piece).first(*received));
  }
  return drain(link);
}

// A TLS session's two directions are one object, and other threads send.
Result<std::size_t> MeshWire::receive(MeshLink& link, std::span<std::byte> piece) {
  const std::lock_guard lock(mutex_);
  return link.socket.receive_some(piece);
}

std::optional<Notice> MeshWire::drain(MeshLink& link) {
  while (!link.left) {
    auto frame = link.reader.next();
    if (!frame) return misbehaved(link, frame.error().what);
    if (!*frame) return {};
    switch ((*frame)->kind) {
      case FrameKind::goodbye:
        link.left = true;
        link.gave_up = !(*frame)->payload.empty();
        break;
      case FrameKind::notice: {
        auto notice = decode_notice((*frame)->payload, static_cast<std::int32_t>(members_.size()));
        if (!notice) return misbehaved(link, notice.error().what);
        return *std::move(notice);
      }
      case FrameKind::data:
        if (notices_only_) return misbehaved(link, "data out of turn");
        link.inbox.push_back(std::move((*frame)->payload));
        break;
      case FrameKind::fence:
        if (!take_fence(link, (*frame)->payload)) return misbehaved(link, "a fence out of place");
        break;
      case FrameKind::place:
        if (!take_place((*frame)->payload)) return misbehaved(link, "a place of no length");
        break;
      case FrameKind::heartbeat:
        break;
      case FrameKind::hello:
      case FrameKind::accepted:
      case FrameKind::refused:
      case FrameKind::query:
      case FrameKind::missing:
      case FrameKind::broken:
        return misbehaved(link, "a frame of another conversation");
    }
  }
  return {};
}

bool MeshWire::take_fence(const MeshLink& link, std::span<const std::byte> payload) {
  std::uint32_t round = 0;
  const auto n = static_cast<std::int64_t>(members_.size());
  if (payload.size() != sizeof round) return false;
  std::memcpy(&round, payload.data(), sizeof round);
  if (round >= 31 || (std::int64_t{1} << round) >= n) return false;
  if (link.peer != (index(self_) + n - (std::int64_t{1} << round)) % n) return false;
  fences_ |= 1U << round;
  return true;
}

bool MeshWire::take_place(std::span<const std::byte> payload) {
  std::uint32_t number = 0;
  if (payload.size() <= sizeof number) return false;
  std::memcpy(&number, payload.data(), sizeof number);
  tell_place(number, payload.subspan(sizeof number));
  return true;
}

// A process that has ended is dead whoever else holds its sockets. What it said before is heard.
std::optional<Notice> MeshWire::look_at_process(MeshLink& link) {
  pollfd entry{link.process.fd(), POLLIN, 0};
  if (!link.process.valid() || poll(&entry, 1, 0) != 1) return {};
  if (auto notice = link.cut ? std::nullopt : read(link)) return notice;
  if (link.left) return {};
  return lost(link, "died: its process has ended without a goodbye");
}

std::optional<Notice> MeshWire::look_for_silence(MeshLink& link) {
  const auto most = std::max<std::int64_t>(kFewestBeats, silence_ / heartbeat_);
  // One that the kernel watches lives, however long it is stopped.
  if (link.missed < most || link.process.valid()) return {};
  link.missed = 0;
  if (data_path_hears(link)) return {};
  return lost(link, fmt::format("is lost: neither its control connection nor the data path has "
                                "heard from it for {:g} s (its host is down or out of reach, or "
                                "the process is stopped; GDRX_SILENCE sets the time)",
                                std::chrono::duration<double>(most * heartbeat_).count()));
}

bool MeshWire::data_path_hears(const MeshLink& link) const {
  return data_path_ && data_path_(Rank{link.peer});
}

std::optional<Notice> MeshWire::ended(MeshLink& link, const Error& how) {
  if (!is_silence(how.native)) {
    return lost(link, "died: its control connection closed without a goodbye");
  }
  link.cut = data_path_hears(link);
  if (link.cut) return {};
  return lost(link, "is unreachable: its host has stopped answering");
}

Notice MeshWire::lost(MeshLink& link, const std::string& how) {
  link.left = true;
  return {Errc::peer_lost, self_, Rank{link.peer}, name_member(members_, link.peer) + ' ' + how};
}

Notice MeshWire::misbehaved(MeshLink& link, const std::string& what) {
  link.left = true;
  return {Errc::protocol, self_, Rank{link.peer},
          fmt::format("{} sent what is not of the protocol: {}", name_member(members_, link.peer),
                      what)};
}

void MeshWire::expect_notices_only(Heart data_path) {
  notices_only_ = true;
  data_path_ = std::move(data_path);
  for (MeshLink& link : links_) {
    link.reader.set_limit(kMostNotice);
    // Not earlier: TCP_USER_TIMEOUT would take a stopped process with a full window for a dead
    // host.
    link.socket.socket().keep_alive(std::max<Duration>(heartbeat_, silence_ / 2),
                                    kPatienceOfTcp * silence_);
  }
}

void MeshWire::beat() {
  const Instant now = steady_clock().now();
  if (now < next_beat_) return;
  next_beat_ = now + heartbeat_;
  const Blob frame = encode_frame(FrameKind::heartbeat, {});
  const std::lock_guard lock(mutex_);
  for (MeshLink& link : links_) {
    if (link.left) continue;
    // From here on the data path is asked for what it has heard since.
    if (++link.missed == 1) (void)data_path_hears(link);
    if (link.unsent.empty()) send(link, frame);
  }
}

void MeshWire::send_data(std::int32_t peer, std::span<const std::byte> payload) {
  const std::lock_guard lock(mutex_);
  send(link_to(peer), encode_frame(FrameKind::data, payload));
}

std::optional<Blob> MeshWire::take_data(std::int32_t peer) {
  MeshLink& link = link_to(peer);
  if (link.inbox.empty()) return {};
  Blob oldest = std::move(link.inbox.front());
  link.inbox.pop_front();
  return oldest;
}

bool MeshWire::has_unsent(std::int32_t peer) const {
  const std::lock_guard lock(mutex_);
  const MeshLink& link = link_to(peer);
  return !link.unsent.empty() || link.socket.unsent();
}

bool MeshWire::flood(const Notice& notice, std::int32_t except) {
  const Blob frame = encode_frame(FrameKind::notice, encode_notice(notice));
  const std::lock_guard lock(mutex_);
  if (std::exchange(flooded_, true)) return false;
  for (MeshLink& link : links_) {
    if (link.peer == except) continue;
    try {
      send(link, frame);
    } catch (const std::bad_alloc&) {
      ::shutdown(link.socket.fd(), SHUT_RDWR);  // an end is news, too
    }
  }
  return true;
}

void MeshWire::tell_place(std::uint32_t number, std::span<const std::byte> place) {
  Blob payload(sizeof number);
  std::memcpy(payload.data(), &number, sizeof number);
  payload.insert(payload.end(), place.begin(), place.end());
  const Blob frame = encode_frame(FrameKind::place, payload);
  const std::lock_guard lock(mutex_);
  if (number <= place_number_) return;
  place_.assign(place.begin(), place.end());
  place_number_ = number;
  for (MeshLink& link : links_) {
    if (!link.left) send(link, frame);
  }
}

std::optional<Blob> MeshWire::place(std::uint32_t number) const {
  const std::lock_guard lock(mutex_);
  if (number != place_number_) return {};
  return place_;
}

void MeshWire::hang_up() noexcept {
  const std::lock_guard lock(mutex_);
  for (const MeshLink& link : links_) ::shutdown(link.socket.fd(), SHUT_RDWR);
}

void MeshWire::send_fence(std::uint32_t round) {
  const auto n = static_cast<std::int64_t>(members_.size());
  const auto peer = static_cast<std::int32_t>((index(self_) + (std::int64_t{1} << round)) % n);
  const std::lock_guard lock(mutex_);
  send(link_to(peer), encode_frame(FrameKind::fence, std::as_bytes(std::span(&round, 1))));
}

bool MeshWire::anyone_left() const {
  return std::any_of(links_.begin(), links_.end(), [](const MeshLink& link) { return link.left; });
}

bool MeshWire::anyone_gave_up() const {
  return std::any_of(links_.begin(), links_.end(),
                     [](const MeshLink& link) { return link.gave_up; });
}

// Never waits: a stopped peer must not delay the others' news. What has no room goes out later.
void MeshWire::send(MeshLink& link, std::span<const std::byte> frame) {
  link.unsent.insert(link.unsent.end(), frame.begin(), frame.end());
  push(link);
}

void MeshWire::push(MeshLink& link) {
  std::span<const std::byte> rest(link.unsent);
  while (!rest.empty()) {
    const auto sent = link.socket.send_some(rest);
    // The end of the connection is judged where it is read.
    if (!sent) rest = {};
    if (!sent || *sent == 0) break;
    rest = rest.subspan(*sent);
  }
  link.unsent.erase(link.unsent.begin(),
                    link.unsent.end() - static_cast<std::ptrdiff_t>(rest.size()));
  (void)link.socket.flush();
}

bool MeshWire::prepare_poll(std::vector<pollfd>& entries) {
  bool pending = false;
  const std::lock_guard lock(mutex_);
  for (MeshLink& link : links_) {
    push(link);
    if (link.cut) continue;
    const bool listening = !link.left && link.inbox.size() <= kMostWaiting;
    const bool unsent = !link.unsent.empty() || link.socket.unsent();
    const int events = (listening ? POLLIN : 0) | (unsent ? POLLOUT : 0);
    pending |= listening && link.socket.pending();
    if (events != 0) entries.push_back({link.socket.fd(), static_cast<short>(events), 0});
    if (!link.left && link.process.valid()) entries.push_back({link.process.fd(), POLLIN, 0});
  }
  return pending;
}

void MeshWire::say_met() {
  const std::lock_guard lock(mutex_);
  if (said_met_) return;
  said_met_ = true;
  const Blob goodbye = encode_frame(FrameKind::goodbye, Blob());
  for (MeshLink& link : links_) send(link, goodbye);
}

void MeshWire::say_goodbye(bool gave_up) {
  const Deadline deadline = Deadline::after(steady_clock(), kGoodbyeTime);
  const std::lock_guard lock(mutex_);
  const Blob goodbye = encode_frame(FrameKind::goodbye, Blob(gave_up ? 1 : 0));
  if (!said_met_) {
    for (MeshLink& link : links_) send(link, goodbye);
  }
  std::array<std::byte, 4096> unread;
  for (MeshLink& link : links_) {
    (void)link.socket.send_all(link.unsent, deadline);
    // Closing over unread bytes is a reset, and a reset can overtake the goodbye.
    for (int i = 0; i < kPiecesAtOnce; ++i) {
      const auto received = link.socket.receive_some(unread);
      if (!received || *received == 0) break;
    }
    ::shutdown(link.socket.fd(), SHUT_WR);
  }
}

}  // namespace gdrx
