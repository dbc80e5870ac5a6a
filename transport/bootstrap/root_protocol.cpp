// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/root_protocol.hpp"

#include <fmt/format.h>

#include "transport/bootstrap/rank_names.hpp"

namespace gdrx {
namespace {

RootProtocol::Reply reply(RootProtocol::PeerNumber to, FrameKind kind, std::string_view text,
                          bool close = false) {
  return {to, std::make_shared<const Blob>(encode_frame(kind, std::as_bytes(std::span(text)))),
          close};
}

}  // namespace

RootProtocol::Replies RootProtocol::take(PeerNumber number, const Frame& frame) {
  const auto known = ranks_.find(number);
  if (known == ranks_.end()) {
    return frame.kind == FrameKind::hello ? greet(number, frame) : refuse(number, "no hello came");
  }
  if (frame.kind == FrameKind::query) return {reply(number, FrameKind::missing, missing())};
  Member& member = members_.at(known->second);
  if (frame.kind != FrameKind::data || member.blob) return refuse(number, "a frame out of turn");
  return gather(member, frame.payload);
}

RootProtocol::Replies RootProtocol::greet(PeerNumber number, const Frame& frame) {
  const auto hello = decode_hello_frame(frame.payload);
  if (!hello) return refuse(number, hello.error().what);
  if (hello->nonce[0] != nonce_[0] || hello->nonce[1] != nonce_[1]) {
    return refuse(number, "the unique id is not this root's");
  }
  if (size_ != 0 && hello->size != size_) {
    return refuse(number, fmt::format("rank {} says there are {} ranks, others say {}", hello->rank,
                                      hello->size, size_));
  }
  if (members_.contains(hello->rank)) {
    return refuse(number, fmt::format("rank {} has come already", hello->rank));
  }
  if (gone_.contains(hello->rank)) {
    return refuse(number, fmt::format("rank {} has come and gone already: a unique id serves one "
                                      "communicator, make a new one",
                                      hello->rank));
  }
  size_ = hello->size;
  ranks_[number] = hello->rank;
  members_[hello->rank].number = number;
  return {reply(number, FrameKind::accepted, {})};
}

RootProtocol::Replies RootProtocol::gather(Member& member, Blob blob) {
  member.blob = std::move(blob);
  ++waiting_;
  if (!gone_.empty()) return break_round(who_has_gone());
  return waiting_ == size_ ? finish_round() : Replies{};
}

RootProtocol::Replies RootProtocol::finish_round() {
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
    replies.push_back({member.number, frame, false});
  }
  waiting_ = 0;
  return replies;
}

// Only those who wait are told: the others may have nothing to gather any more.
RootProtocol::Replies RootProtocol::break_round(const std::string& why) {
  Replies replies;
  for (auto& [rank, member] : members_) {
    if (!member.blob) continue;
    member.blob.reset();
    replies.push_back(reply(member.number, FrameKind::broken, why, true));
  }
  waiting_ = 0;
  return replies;
}

RootProtocol::Replies RootProtocol::refuse(PeerNumber number, const std::string& why) {
  last_refusal_ = why;
  return {reply(number, FrameKind::refused, why, true)};
}

RootProtocol::Replies RootProtocol::leave(PeerNumber number) {
  const auto known = ranks_.find(number);
  if (known == ranks_.end()) return {};
  const auto member = members_.find(known->second);
  const bool waited = member->second.blob.has_value();
  gone_.insert(member->first);
  members_.erase(member);
  ranks_.erase(known);
  if (waited) --waiting_;
  return waiting_ > 0 ? break_round(who_has_gone()) : Replies{};
}

bool RootProtocol::over() const noexcept {
  return size_ > 0 && static_cast<std::int32_t>(gone_.size()) == size_;
}

std::string RootProtocol::who_has_gone() const {
  const std::vector<std::int32_t> gone(gone_.begin(), gone_.end());
  const std::string others = missing();
  return fmt::format("{} left the exchange before it was complete{}{}", name_ranks(gone),
                     others.empty() ? "" : "; ", others);
}

std::string RootProtocol::missing() const {
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
