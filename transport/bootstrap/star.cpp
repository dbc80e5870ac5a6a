// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/star.hpp"

#include <fmt/format.h>

#include "transport/bootstrap/text.hpp"

namespace gdrx {
namespace {

Star::Reply reply(Star::Guest to, FrameKind kind, std::string_view text, bool close = false) {
  return {to, std::make_shared<const Blob>(encode_frame(kind, std::as_bytes(std::span(text)))),
          close};
}

}  // namespace

Star::Replies Star::take(Guest guest, const Frame& frame) {
  const auto known = ranks_.find(guest);
  if (known == ranks_.end()) {
    return frame.kind == FrameKind::hello ? greet(guest, frame) : refuse(guest, "no hello came");
  }
  if (frame.kind == FrameKind::query) return {reply(guest, FrameKind::missing, missing())};
  Member& member = members_.at(known->second);
  if (frame.kind != FrameKind::data || member.blob) return refuse(guest, "a frame out of turn");
  return gather(member, frame.payload);
}

Star::Replies Star::greet(Guest guest, const Frame& frame) {
  const auto hello = decode_hello_frame(frame.payload);
  if (!hello) return refuse(guest, hello.error().what);
  if (hello->nonce[0] != nonce_[0] || hello->nonce[1] != nonce_[1]) {
    return refuse(guest, "the unique id is not this root's");
  }
  if (size_ != 0 && hello->size != size_) {
    return refuse(guest, fmt::format("rank {} says there are {} ranks, others say {}", hello->rank,
                                     hello->size, size_));
  }
  if (members_.contains(hello->rank)) {
    return refuse(guest, fmt::format("rank {} has come already", hello->rank));
  }
  if (gone_.contains(hello->rank)) {
    return refuse(guest, fmt::format("rank {} has come and gone already: a unique id serves one "
                                     "communicator, make a new one",
                                     hello->rank));
  }
  size_ = hello->size;
  ranks_[guest] = hello->rank;
  members_[hello->rank].guest = guest;
  return {reply(guest, FrameKind::accepted, {})};
}

Star::Replies Star::gather(Member& member, Blob blob) {
  member.blob = std::move(blob);
  ++waiting_;
  if (!gone_.empty()) return break_round(who_has_gone());
  return waiting_ == size_ ? finish_round() : Replies{};
}

Star::Replies Star::finish_round() {
  std::size_t bytes = 0;
  for (const auto& [rank, member] : members_) bytes += sizeof(std::uint32_t) + member.blob->size();
  if (bytes > kMaxFrame) {
    return break_round(
        fmt::format("the ranks sent {} bytes together where {} are the most", bytes, kMaxFrame));
  }
  Blob all;
  all.reserve(bytes);
  for (const auto& [rank, member] : members_) append_blob(all, *member.blob);
  const auto frame = std::make_shared<const Blob>(encode_frame(FrameKind::data, all));
  Replies replies;
  for (auto& [rank, member] : members_) {
    member.blob.reset();
    replies.push_back({member.guest, frame, false});
  }
  waiting_ = 0;
  return replies;
}

// Only those who wait are told: the others may have nothing to gather any more.
Star::Replies Star::break_round(const std::string& why) {
  Replies replies;
  for (auto& [rank, member] : members_) {
    if (!member.blob) continue;
    member.blob.reset();
    replies.push_back(reply(member.guest, FrameKind::broken, why, true));
  }
  waiting_ = 0;
  return replies;
}

Star::Replies Star::refuse(Guest guest, const std::string& why) {
  last_refusal_ = why;
  return {reply(guest, FrameKind::refused, why, true)};
}

Star::Replies Star::leave(Guest guest) {
  const auto known = ranks_.find(guest);
  if (known == ranks_.end()) return {};
  const auto member = members_.find(known->second);
  const bool waited = member->second.blob.has_value();
  gone_.insert(member->first);
  members_.erase(member);
  ranks_.erase(known);
  if (waited) --waiting_;
  return waiting_ > 0 ? break_round(who_has_gone()) : Replies{};
}

bool Star::over() const noexcept {
  return size_ > 0 && static_cast<std::int32_t>(gone_.size()) == size_;
}

std::string Star::who_has_gone() const {
  const std::vector<std::int32_t> gone(gone_.begin(), gone_.end());
  const std::string others = missing();
  return fmt::format("{} left the exchange before it was complete{}{}", name_ranks(gone),
                     others.empty() ? "" : "; ", others);
}

std::string Star::missing() const {
  std::vector<std::int32_t> absent;
  std::vector<std::int32_t> idle;
  for (std::int32_t rank = 0; rank < size_; ++rank) {
    const auto member = members_.find(rank);
    if (member == members_.end()) {
      if (!gone_.contains(rank)) absent.push_back(rank);
    } else if (waiting_ > 0 && !member->second.blob) {
      idle.push_back(rank);
    }
  }
  std::string text = absent.empty() ? "" : name_missing(absent, size_);
  if (!idle.empty()) {
    text += fmt::format("{}{} came but take no part in the exchange", text.empty() ? "" : "; ",
                        name_ranks(idle));
  }
  return text;
}

}  // namespace gdrx
