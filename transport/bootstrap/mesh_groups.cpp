// SPDX-License-Identifier: Apache-2.0
// What a communicator says to its ranks by the links that it shares, and hears of them.
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <thread>

#include "transport/bootstrap/failure_notice.hpp"
#include "transport/bootstrap/mesh_frame.hpp"
#include "transport/bootstrap/mesh_wire.hpp"
#include "transport/bootstrap/socket_errors.hpp"

namespace gdrx {
namespace {

using std::chrono::milliseconds;
using Leave = MeshGroup::Leave;

constexpr std::size_t kMostPlace = 512;
constexpr int kLongestWaitMs = 1000;
constexpr const char* kNotOfIt = "a frame of a communicator that it is not in";
constexpr const char* kGaveWay =
    " has said more of other communicators meanwhile than is kept for those that are not made yet";

thread_local const MeshWire* here = nullptr;  // whose thread this is

}  // namespace

void MeshWire::belong_here() const noexcept { here = this; }

bool MeshWire::is_here() const noexcept { return here == this; }

void MeshWire::pause(std::unique_lock<std::mutex>& lock, Deadline deadline) {
  if (!is_here()) {
    const int most = std::min(kLongestWaitMs, poll_milliseconds(deadline));
    changed_.wait_for(lock, milliseconds(most));
    return;
  }
  lock.unlock();
  pump();
  beat();
  std::this_thread::sleep_for(milliseconds(1));
  lock.lock();
}

// --- in and out

Result<void> MeshWire::add(const Group& group) {
  const std::lock_guard lock(mutex_);
  for (const Group& other : groups_) {
    if (other->id == group->id) return fail(Errc::protocol, "a communicator's id is there already");
  }
  groups_.reserve(groups_.size() + 1);
  promise_last_words(*group);
  groups_.push_back(group);
  take_held(*group);
  for (GroupPeer& peer : group->peers) {
    if (peer.link->left) {
      tell_of({Errc::peer_lost, "has left before the communicator was made"}, *group, peer);
    } else if (peer.link->cut) {
      tell_of(unreachable(true), *group, peer);
    }
  }
  return {};
}

// What is said when all ends must not need memory, of which the lack may be the reason.
void MeshWire::promise_last_words(MeshGroup& group) {
  std::size_t promised = 0;
  try {
    for (; promised < group.peers.size(); ++promised) {
      group.peers[promised].link->unsent.promise(kLastWords);
    }
  } catch (const std::bad_alloc&) {
    while (promised > 0) group.peers[--promised].link->unsent.release(kLastWords);
    throw;
  }
}

void MeshWire::remove(MeshGroup& group) noexcept {
  const std::lock_guard lock(mutex_);
  const auto is_it = [&](const Group& one) { return one.get() == &group; };
  const auto at = std::find_if(groups_.begin(), groups_.end(), is_it);
  if (at == groups_.end()) return;
  if (!group.said_goodbye) say_goodbye(group, true);
  for (const GroupPeer& peer : group.peers) peer.link->unsent.release(kLastWords);
  groups_.erase(at);
}

void MeshWire::start(MeshGroup& group, std::function<bool(Rank)> data_path) {
  const std::lock_guard lock(mutex_);
  group.started = true;
  group.data_path_hears = std::move(data_path);
}

// --- what comes. A reason: the peer has broken the rules.

// Of a communicator that is unknown this rank may be the last to join.
std::optional<std::string> MeshWire::take(MeshLink& link, const Frame& frame) {
  std::span<const std::byte> payload(frame.payload);
  const auto id = take_group_id(payload);
  if (!id) return "a frame of no communicator";
  const auto at = std::find_if(groups_.begin(), groups_.end(),
                               [&](const Group& group) { return group->id == *id; });
  if (at == groups_.end()) {
    link.held.hold(*id, frame.kind, payload);
    return {};
  }
  GroupPeer* const peer = (*at)->peer_by(link);
  if (peer == nullptr) return kNotOfIt;
  if (peer->left) return {};
  return take(**at, *peer, frame.kind, payload);
}

// What ranks said of it that joined before this one.
void MeshWire::take_held(MeshGroup& group) {
  for (MeshLink& link : links_) {
    if (const GroupPeer* const peer = group.peer_by(link); peer && link.held.lost(group.id)) {
      const std::string who = group.name_of(*peer);
      hear(group, {Errc::system, group.self, group.self, "too late: " + who + kGaveWay}, nullptr);
    }
    for (const Frame& frame : link.held.take(group.id)) {
      GroupPeer* const peer = group.peer_by(link);
      auto wrong = peer == nullptr ? std::optional<std::string>(kNotOfIt)
                   : peer->left    ? std::nullopt
                                   : take(group, *peer, frame.kind, frame.payload);
      if (!wrong || link.left) continue;
      tell_of(misbehaved(link, *wrong), link);
      ring();
    }
  }
}

std::optional<std::string> MeshWire::take(MeshGroup& group, GroupPeer& peer, FrameKind kind,
                                          std::span<const std::byte> payload) {
  switch (kind) {
    case FrameKind::goodbye:
      peer.left = true;
      peer.gave_up = !payload.empty();
      go_on_leaving(group);
      return {};
    case FrameKind::notice:
      return take_notice(group, peer, payload);
    case FrameKind::data:
      return take_data(group, peer, payload);
    case FrameKind::fence:
      return take_fence(group, peer);
    case FrameKind::place:
      return take_place(group, payload);
    case FrameKind::heartbeat:
    case FrameKind::hello:
    case FrameKind::accepted:
    case FrameKind::refused:
    case FrameKind::query:
    case FrameKind::missing:
    case FrameKind::broken:
      break;
  }
  return "a frame of another conversation";
}

std::optional<std::string> MeshWire::take_notice(MeshGroup& group, const GroupPeer& peer,
                                                 std::span<const std::byte> payload) {
  const auto notice = decode_notice(payload, group.size());
  if (!notice) return notice.error().what;
  group.news |= hear(group, *notice, peer.link);
  return {};
}

// The first byte says whether more of the same follows.
std::optional<std::string> MeshWire::take_data(MeshGroup& group, GroupPeer& peer,
                                               std::span<const std::byte> payload) {
  if (group.started || !group.is_of_tree(peer)) return "data out of turn";
  if (payload.empty() || peer.told) return "data that nobody asked for";
  if (peer.partial.size() + payload.size() - 1 > kMaxFrame) return "data without an end";
  peer.partial.insert(peer.partial.end(), payload.begin() + 1, payload.end());
  if (payload[0] == std::byte{0}) peer.told = std::exchange(peer.partial, {});
  return {};
}

// Up the tree, or down where the parent had this rank's word.
std::optional<std::string> MeshWire::take_fence(MeshGroup& group, GroupPeer& peer) {
  if (!group.is_of_tree(peer) || peer.fenced) return "a fence out of place";
  if (&peer == group.parent && !group.said_fence) return "a fence out of turn";
  peer.fenced = true;
  go_on_leaving(group);
  return {};
}

std::optional<std::string> MeshWire::take_place(MeshGroup& group,
                                                std::span<const std::byte> payload) {
  std::uint32_t number = 0;
  if (payload.size() <= sizeof number || payload.size() > sizeof number + kMostPlace) {
    return "a place of a wrong length";
  }
  std::memcpy(&number, payload.data(), sizeof number);
  pass_place(group, number, payload.subspan(sizeof number));
  return {};
}

// --- notices

bool MeshWire::hear(MeshGroup& group, const FailureNotice& notice, const MeshLink* from) noexcept {
  if (group.notice) return false;
  const MeshWord word = MeshWord::notice(group.id, notice);
  group.notice = notice;
  if (group.leave == Leave::waiting) group.leave = Leave::told;
  for (const GroupPeer& peer : group.peers) {
    if (peer.link != from) send(*peer.link, word);
  }
  return true;
}

void MeshWire::announce(MeshGroup& group, const FailureNotice& notice) noexcept {
  const std::lock_guard lock(mutex_);
  hear(group, notice, nullptr);
  changed_.notify_all();
}

void MeshWire::fail_all(const Text& why) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Group& group : groups_) {
    group->news |= hear(*group, {Errc::system, group->self, group->self, why}, nullptr);
  }
  changed_.notify_all();
}

std::optional<MeshWire::News> MeshWire::next_news() {
  const std::lock_guard lock(mutex_);
  for (const Group& group : groups_) {
    if (!group->started || !group->news) continue;
    group->news = false;
    return News{group, *group->notice};
  }
  return {};
}

// --- what is gathered: up the tree, and down again

Result<std::vector<Blob>> MeshWire::all_gather(MeshGroup& group, std::span<const std::byte> mine,
                                               Deadline deadline) {
  std::unique_lock lock(mutex_);
  auto all = gather(lock, group, mine, deadline);
  // A rank that fails here says why before it leaves, so that the others do not have to guess.
  if (!all) hear(group, {all.error().code, group.self, group.self, all.error().what}, nullptr);
  return all;
}

// What comes of a child is its own and that of all below it, in the tree's order.
Result<std::vector<Blob>> MeshWire::gather(std::unique_lock<std::mutex>& lock, MeshGroup& group,
                                           std::span<const std::byte> mine, Deadline deadline) {
  Blob packed;
  append_blob(packed, mine);
  for (GroupPeer* const child : group.children) {
    const Blob below = GDRX_TRY(await(lock, group, *child, deadline));
    packed.insert(packed.end(), below.begin(), below.end());
  }
  if (packed.size() > kMaxFrame) {
    return fail(
        Errc::invalid_argument,
        fmt::format("the ranks gather {} bytes where {} are the most", packed.size(), kMaxFrame));
  }
  if (group.parent != nullptr) {
    send_data(group, *group.parent, packed);
    packed = GDRX_TRY(await(lock, group, *group.parent, deadline));
  }
  for (GroupPeer* const child : group.children) send_data(group, *child, packed);
  std::vector<Blob> by_order = GDRX_TRY(split_blobs(packed, group.order.size()));
  std::vector<Blob> all(by_order.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[static_cast<std::size_t>(group.order[i])] = std::move(by_order[i]);
  }
  return all;
}

Result<Blob> MeshWire::await(std::unique_lock<std::mutex>& lock, MeshGroup& group, GroupPeer& peer,
                             Deadline deadline) {
  while (true) {
    if (peer.told) {
      Blob told = *std::move(peer.told);
      peer.told.reset();
      return told;
    }
    if (group.notice) return fail(group.notice->code, group.notice->text);
    if (peer.left) {
      return fail(Errc::peer_lost, group.name_of(peer) + " left while the communicator was made");
    }
    if (deadline.passed(steady_clock().now())) {
      return fail(Errc::timeout,
                  fmt::format("rank {} waited in vain for {} while the communicator was made",
                              index(group.self), group.name_of(peer)));
    }
    pause(lock, deadline);
  }
}

void MeshWire::send_data(const MeshGroup& group, GroupPeer& peer,
                         std::span<const std::byte> payload) {
  do {
    const auto now = payload.first(std::min(payload.size(), kMostMeshPiece));
    payload = payload.subspan(now.size());
    Blob piece{payload.empty() ? std::byte{0} : std::byte{1}};
    piece.insert(piece.end(), now.begin(), now.end());
    send(*peer.link, encode_mesh_frame(FrameKind::data, group.id, piece));
  } while (!payload.empty());
}

// --- places

void MeshWire::tell_place(MeshGroup& group, std::uint32_t number,
                          std::span<const std::byte> place) {
  const std::lock_guard lock(mutex_);
  pass_place(group, number, place);
}

void MeshWire::pass_place(MeshGroup& group, std::uint32_t number,
                          std::span<const std::byte> place) {
  if (number <= group.place_number) return;
  Blob payload(sizeof number);
  std::memcpy(payload.data(), &number, sizeof number);
  payload.insert(payload.end(), place.begin(), place.end());
  const Blob frame = encode_mesh_frame(FrameKind::place, group.id, payload);
  group.place.assign(place.begin(), place.end());
  group.place_number = number;
  for (const GroupPeer& peer : group.peers) {
    if (!peer.left) send(*peer.link, frame);
  }
}

std::optional<Blob> MeshWire::place(const MeshGroup& group, std::uint32_t number) const {
  const std::lock_guard lock(mutex_);
  if (number != group.place_number) return {};
  return group.place;
}

// --- the end: up the tree goes the word that all below want to leave, down that all do

MeshGroup::Leave MeshWire::leave(MeshGroup& group, Deadline deadline) {
  std::unique_lock lock(mutex_);
  group.leaving = true;
  go_on_leaving(group);
  while (group.leave == Leave::waiting && !deadline.passed(steady_clock().now())) {
    pause(lock, deadline);
  }
  return group.leave;
}

// A rank that left in order has left together with all, unless it gave up waiting for some.
void MeshWire::go_on_leaving(MeshGroup& group) {
  if (!group.leaving || group.leave != Leave::waiting) return;
  if (group.anyone_gave_up()) {
    group.leave = Leave::alone;
    return;
  }
  if (!group.anyone_left()) {
    if (!group.all_below_want_to_leave()) return;
    if (group.parent != nullptr && !group.said_fence) {
      send(*group.parent->link, MeshWord::fence(group.id));
      group.said_fence = true;
    }
    if (group.parent != nullptr && !group.parent->fenced) return;
  }
  const MeshWord fence = MeshWord::fence(group.id);
  for (GroupPeer* const child : group.children) send(*child->link, fence);
  say_goodbye(group, false);
  group.leave = Leave::together;
}

// After they have met this process may end without another word.
void MeshWire::say_goodbye(MeshGroup& group, bool gave_up) noexcept {
  const MeshWord goodbye = MeshWord::goodbye(group.id, gave_up);
  for (const GroupPeer& peer : group.peers) send(*peer.link, goodbye);
  group.said_goodbye = true;
}

std::string MeshWire::awaited(const MeshGroup& group) const {
  const std::lock_guard lock(mutex_);
  if (group.leave != Leave::waiting) return {};
  for (const GroupPeer* const child : group.children) {
    if (!child->fenced) return group.name_of(*child);
  }
  return group.parent != nullptr ? group.name_of(*group.parent) : std::string();
}

}  // namespace gdrx
