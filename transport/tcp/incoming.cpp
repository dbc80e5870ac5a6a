// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/incoming.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "transport/secure/copy_apart.hpp"

namespace gdrx::tcp {
namespace {

// Between messages so much is read at once: many small ones, or the begin of a large one, of which
// the rest then goes straight to its place.
constexpr std::size_t kStage = 16 << 10;
// Behind a message's rest: what follows it.
constexpr std::size_t kBehind = 4 << 10;
// One poll takes at most so much from a peer that never stops.
constexpr std::size_t kMostAtOnce = 4U << 20;

}  // namespace

Incoming::Incoming(Rank peer) : peer_(peer), stage_(kStage) {}

Result<bool> Incoming::pump(Stream& stream, const Place& place) {
  std::size_t total = 0;
  while (place.ready.has_room() && total < kMostAtOnce && !goodbye_) {
    if (stream.encrypted()) {
      const std::size_t came = GDRX_TRY(receive_opened(stream, place));
      if (came == 0) break;
      total += came;
      if (stream.dry()) break;
      continue;
    }
    if (begin_ > 0) {  // less than a head
      std::memmove(stage_.data(), stage_.data() + begin_, staged());
      end_ = staged();
      begin_ = 0;
    }
    std::span<std::byte> room = std::span(stage_).subspan(end_);
    std::span<std::byte> direct;
    if (in_message_ && to_ != nullptr) {
      direct = {to_, static_cast<std::size_t>(left_)};
      room = room.first(kBehind);
    }
    const std::size_t came = GDRX_TRY(stream.receive(direct, room));
    if (came == 0) break;
    total += came;
    const std::size_t straight = std::min(direct.size(), came);
    if (!direct.empty()) advance(straight, place);
    end_ += came - straight;
    GDRX_TRY(parse_stage(place));
    if (stream.dry()) break;
  }
  return total > 0;
}

// Whole records of a message are opened in their place, and what else there is goes there from
// where it was opened.
Result<std::size_t> Incoming::receive_opened(Stream& stream, const Place& place) {
  if (in_message_ && to_ != nullptr) {
    const std::size_t came = GDRX_TRY(stream.read({to_, static_cast<std::size_t>(left_)}));
    if (came > 0) advance(came, place);
    return came;
  }
  std::span<const std::byte> opened = GDRX_TRY(stream.peek());
  const std::size_t came = opened.size();
  if (came == 0) return came;
  if (staged() > 0) {
    const std::size_t some = std::min(sizeof(MessageHead) - staged(), came);
    stage(opened.first(some));
    opened = opened.subspan(some);
    GDRX_TRY(parse_stage(place));
  }
  GDRX_TRY(parse(opened, place));
  if (!opened.empty() && !goodbye_) stage(opened);
  stream.take(came);
  return came;
}

void Incoming::advance(std::size_t bytes, const Place& place) noexcept {
  to_ += bytes;
  left_ -= bytes;
  if (left_ == 0) end(place);
}

// A part of a head.
void Incoming::stage(std::span<const std::byte> bytes) noexcept {
  std::memcpy(stage_.data() + end_, bytes.data(), bytes.size());
  end_ += bytes.size();
}

Result<void> Incoming::parse_stage(const Place& place) {
  std::span<const std::byte> rest = std::span(stage_).subspan(begin_, staged());
  GDRX_TRY(parse(rest, place));
  begin_ = end_ - rest.size();
  if (rest.empty()) begin_ = end_ = 0;
  return {};
}

// Takes them off the front; fewer than a head's are left, or nothing follows.
Result<void> Incoming::parse(std::span<const std::byte>& bytes, const Place& place) {
  while (true) {
    if (in_message_) {
      const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
      if (to_ != nullptr && some > 0) {
        copy_apart(to_, bytes.data(), some);
        to_ += some;
      }
      bytes = bytes.subspan(some);
      left_ -= some;
      if (left_ > 0) return {};
      end(place);
    }
    if (bytes.size() < sizeof(MessageHead) || goodbye_) return {};
    MessageHead head;
    std::memcpy(&head, bytes.data(), sizeof head);
    bytes = bytes.subspan(sizeof head);
    GDRX_TRY(begin(head, place));
  }
}

// Nothing here is trusted: not the region, not the bounds.
Result<void> Incoming::begin(const MessageHead& head, const Place& place) {
  if (head.magic != kMagic || head.kind < Kind::write || head.kind > Kind::goodbye) {
    return fail(Errc::protocol, fmt::format("rank {} sent what is no message", index(peer_)));
  }
  if (head.kind == Kind::goodbye) {
    goodbye_ = true;
    return {};
  }
  const std::span<std::byte>* region = place.regions.find(head.region, head.nonce);
  if (region == nullptr && !place.drops_late) {
    return fail(Errc::protocol,
                fmt::format("rank {} wrote to a region that is not there", index(peer_)));
  }
  if (region != nullptr &&
      (head.offset > region->size() || head.length > region->size() - head.offset)) {
    return fail(Errc::protocol,
                fmt::format("rank {} wrote {} bytes at {} of a region of {}", index(peer_),
                            head.length, head.offset, region->size()));
  }
  in_message_ = true;
  immediate_set_ = region != nullptr && head.kind == Kind::write_immediate;
  immediate_ = head.immediate;
  to_ = region == nullptr ? nullptr : region->data() + head.offset;
  left_ = head.length;
  return {};
}

void Incoming::end(const Place& place) noexcept {
  in_message_ = false;
  if (immediate_set_) place.ready.push({CompletionKind::immediate, peer_, immediate_, 0});
}

bool Incoming::forget(std::span<const std::byte> region) noexcept {
  if (!in_message_ || to_ == nullptr || to_ < region.data() ||
      to_ + left_ > region.data() + region.size()) {
    return false;
  }
  to_ = nullptr;
  immediate_set_ = false;
  return true;
}

}  // namespace gdrx::tcp
