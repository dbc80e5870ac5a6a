// SPDX-License-Identifier: Apache-2.0
// What comes by the links, and who has gone.
#include "transport/bootstrap/mesh_wire.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "transport/bootstrap/failure_notice.hpp"
#include "transport/bootstrap/mesh_frame.hpp"
#include "transport/bootstrap/socket_errors.hpp"

namespace gdrx {
namespace {

constexpr int kFramesAtOnce = 1024;  // a link that never stops talking does not keep the thread
constexpr std::chrono::milliseconds kGoodbyeTime{200};

constexpr int kFewestBeats = 3;     // of silence, however short it may be
constexpr int kPatienceOfTcp = 20;  // times the silence; by then the beats have decided

}  // namespace

MeshWire::MeshWire(MeshLinks links, Duration heartbeat, Duration silence, Socket bell)
    : links_(std::move(links.links)),
      members_(std::move(links.members)),
      heartbeat_(heartbeat),
      silence_(silence),
      bell_(std::move(bell)) {
  for (MeshLink& link : links_) {
    link.reader.set_limit(kMostMeshFrame);
    // Not earlier: TCP_USER_TIMEOUT would take a stopped process with a full window for a dead
    // host.
    link.socket.socket().keep_alive(std::max<Duration>(heartbeat_, silence_ / 2),
                                    kPatienceOfTcp * silence_);
  }
}

void MeshWire::ring() noexcept { eventfd_write(bell_.fd(), 1); }

void MeshWire::hush() noexcept {
  eventfd_t ignored = 0;
  eventfd_read(bell_.fd(), &ignored);
}

std::vector<std::int32_t> MeshWire::lost() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::int32_t> lost;
  for (const MeshLink& link : links_) {
    if (link.left || link.cut) lost.push_back(link.peer);
  }
  return lost;
}

void MeshWire::groups(std::vector<Group>& all) const {
  const std::lock_guard lock(mutex_);
  all.assign(groups_.begin(), groups_.end());
}

void MeshWire::pump() {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<const MeshLink*, Loss>> losses;
  for (MeshLink& link : links_) {
    push(link);
    if (link.left) continue;
    auto loss = link.cut ? std::nullopt : read(link);
    if (!loss && !link.left) loss = look_at_process(link);
    if (!loss && !link.left) loss = look_for_silence(link);
    if (loss) losses.emplace_back(&link, *std::move(loss));
  }
  for (const auto& [link, loss] : losses) tell_of(loss, *link);
  changed_.notify_all();
}

void MeshWire::tell_of(const Loss& loss, const MeshLink& link) {
  for (const Group& group : groups_) {
    if (loss.cut && group->started) continue;
    if (GroupPeer* const peer = group->peer_by(link)) tell_of(loss, *group, *peer);
  }
}

// Whoever has left in order may end.
void MeshWire::tell_of(const Loss& loss, MeshGroup& group, GroupPeer& peer) {
  if (std::exchange(peer.left, true)) return;
  const FailureNotice notice{loss.code, group.self, Rank{peer.rank},
                             group.name_of(peer) + ' ' + loss.how};
  group.news |= hear(group, notice, peer.link);
}

// What came before the end of a stream is drained before its end is judged, what an earlier call
// left in the reader, too.
std::optional<MeshWire::Loss> MeshWire::read(MeshLink& link) {
  std::array<std::byte, 16384> piece;
  for (int i = 0; i < kFramesAtOnce; ++i) {
    if (auto loss = drain(link)) return loss;
    const auto received = link.socket.receive_some(piece);
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

std::optional<MeshWire::Loss> MeshWire::drain(MeshLink& link) {
  while (true) {
    auto frame = link.reader.next();
    if (!frame) return misbehaved(link, frame.error().what);
    if (!*frame) return {};
    if ((*frame)->kind == FrameKind::heartbeat) continue;
    if (const auto wrong = take(link, **frame)) return misbehaved(link, *wrong);
  }
}

// A process that has ended is dead whoever else holds its sockets. What it said before is heard.
std::optional<MeshWire::Loss> MeshWire::look_at_process(MeshLink& link) {
  pollfd entry{link.process.fd(), POLLIN, 0};
  if (!link.process.valid() || poll(&entry, 1, 0) != 1) return {};
  if (auto loss = link.cut ? std::nullopt : read(link); loss && link.left) return loss;
  return lost(link, "died: its process has ended without a goodbye");
}

std::optional<MeshWire::Loss> MeshWire::look_for_silence(MeshLink& link) {
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

// Each is asked, as an answer is of the time since the last.
bool MeshWire::data_path_hears(const MeshLink& link) const {
  bool hears = false;
  for (const Group& group : groups_) {
    const GroupPeer* const peer = group->peer_by(link);
    if (peer == nullptr || !group->data_path_hears) continue;
    if (group->data_path_hears(Rank{peer->rank})) hears = true;
  }
  return hears;
}

std::optional<MeshWire::Loss> MeshWire::ended(MeshLink& link, const Error& how) {
  if (!is_silence(how.native) && !is_silence(link.broken)) {
    return lost(link, "died: its control connection closed without a goodbye");
  }
  link.cut = data_path_hears(link);
  link.left = !link.cut;
  return unreachable(link.cut);
}

MeshWire::Loss MeshWire::unreachable(bool cut) {
  return {Errc::peer_lost, "is unreachable: its host has stopped answering", cut};
}

MeshWire::Loss MeshWire::lost(MeshLink& link, std::string how) {
  link.left = true;
  return {Errc::peer_lost, std::move(how)};
}

MeshWire::Loss MeshWire::misbehaved(MeshLink& link, const std::string& what) {
  link.left = true;
  return {Errc::protocol, "sent what is not of the protocol: " + what};
}

void MeshWire::beat() {
  const Instant now = steady_clock().now();
  if (now < next_beat_) return;
  next_beat_ = now + heartbeat_;
  const FrameHeader frame = header_of(FrameKind::heartbeat, 0);
  const std::lock_guard lock(mutex_);
  for (MeshLink& link : links_) {
    if (link.left) continue;
    // From here on the data path is asked for what it has heard since.
    if (++link.missed == 1) (void)data_path_hears(link);
    if (link.unsent.empty()) send(link, std::as_bytes(std::span(&frame, 1)));
  }
}

void MeshWire::refuse(MeshGroupId group, std::span<const std::int32_t> ranks, Rank self,
                      const Error& why) {
  const MeshWord word = MeshWord::notice(group, {why.code, self, self, why.what});
  const std::lock_guard lock(mutex_);
  for (MeshLink& link : links_) {
    const bool of_it = std::find(ranks.begin(), ranks.end(), link.peer) != ranks.end();
    if (of_it) send(link, word.bytes());
  }
}

void MeshWire::hang_up() noexcept {
  const std::lock_guard lock(mutex_);
  for (const MeshLink& link : links_) ::shutdown(link.socket.fd(), SHUT_RDWR);
}

// Never waits: a stopped peer must not delay the others' news. What has no room goes out later, by
// the thread, which sleeps and does not know.
void MeshWire::send(MeshLink& link, std::span<const std::byte> frame) {
  if (link.left || link.shut) return;
  link.unsent.put(frame);
  push_or_ring(link);
}

// By what was promised to its communicator.
void MeshWire::send(MeshLink& link, const MeshWord& word) noexcept {
  if (link.left || link.shut) return;
  link.unsent.put_promised(word.bytes());
  try {
    push_or_ring(link);
  } catch (const std::bad_alloc&) {  // for words about the socket: the thread reads its end
    ring();
  }
}

void MeshWire::push_or_ring(MeshLink& link) {
  push(link);
  if (!link.shut && (!link.unsent.empty() || link.socket.unsent())) ring();
}

void MeshWire::shut(MeshLink& link, const Error& why) noexcept {
  link.shut = true;
  link.broken = why.native;
}

// Of what was half said nobody knows how much went out: none of it goes out twice.
void MeshWire::push(MeshLink& link) {
  try {
    push_all(link);
  } catch (...) {
    link.shut = true;
    link.unsent.drop(link.unsent.bytes().size());
    ::shutdown(link.socket.fd(), SHUT_RDWR);
    throw;
  }
}

void MeshWire::push_all(MeshLink& link) {
  std::span<const std::byte> rest = link.unsent.bytes();
  while (!rest.empty()) {
    const auto sent = link.socket.send_some(rest);
    if (!sent) shut(link, sent.error());
    if (!sent || *sent == 0) break;
    rest = rest.subspan(*sent);
  }
  // The end of the connection is judged where it is read.
  if (!link.shut) {
    if (const auto flushed = link.socket.flush(); !flushed) shut(link, flushed.error());
  }
  if (link.shut) rest = {};
  link.unsent.drop(link.unsent.bytes().size() - rest.size());
}

Duration MeshWire::prepare_poll(std::vector<pollfd>& entries) {
  Duration longest = Duration::max();
  entries.push_back({bell_.fd(), POLLIN, 0});
  const std::lock_guard lock(mutex_);
  for (MeshLink& link : links_) {
    push(link);
    if (link.cut) continue;
    const bool unsent = !link.shut && (!link.unsent.empty() || link.socket.unsent());
    const int events =
        (link.left ? 0 : POLLIN) | link.shortage.events(unsent, link.socket, longest);
    if (!link.left && link.socket.pending()) longest = Duration::zero();
    if (events != 0) entries.push_back({link.socket.fd(), static_cast<short>(events), 0});
    if (!link.left && link.process.valid()) entries.push_back({link.process.fd(), POLLIN, 0});
  }
  return longest;
}

void MeshWire::close() {
  const Deadline deadline = Deadline::after(steady_clock(), kGoodbyeTime);
  const std::lock_guard lock(mutex_);
  std::array<std::byte, 4096> unread;
  for (MeshLink& link : links_) {
    (void)link.socket.send_all(link.unsent.bytes(), deadline);
    // Closing over unread bytes is a reset, and a reset can overtake the goodbye.
    for (int i = 0; i < kFramesAtOnce; ++i) {
      const auto received = link.socket.receive_some(unread);
      if (!received || *received == 0) break;
    }
    ::shutdown(link.socket.fd(), SHUT_WR);
  }
}

}  // namespace gdrx
