// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/porter.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>

#include "transport/bootstrap/text.hpp"

namespace gdrx {
namespace {

constexpr int kPauseMs = 50;
constexpr auto silent_since = [](const auto& visitor) { return visitor.silence.since(); };

}  // namespace

Result<std::vector<MeshLink>> Porter::admit(Deadline deadline) {
  while (!expected_.empty()) {
    wait(deadline);
    settle_all(deadline);  // before somebody is put out
    accept_all();
    settle_all(deadline);
    if (!expected_.empty() && deadline.passed(steady_clock().now())) {
      const std::vector<std::int32_t> missing(expected_.begin(), expected_.end());
      return fail(Errc::timeout,
                  fmt::format("{} did not open a control connection to rank {} in time{}{}",
                              name_ranks(missing), self_.rank, shortage_ ? ": " : "",
                              shortage_ ? shortage_->what : ""));
    }
  }
  return std::move(links_);
}

void Porter::wait(Deadline deadline) {
  std::vector<pollfd> entries;
  if (!paused_) entries.push_back({listener_.fd(), POLLIN, 0});
  for (const Visitor& visitor : visitors_) entries.push_back({visitor.socket.fd(), POLLIN, 0});
  poll(entries.data(), entries.size(),
       std::min(paused_ ? kPauseMs : 1000, poll_milliseconds(deadline)));
}

// What waits in the listener's queue stays there while there is no room.
void Porter::accept_all() {
  paused_ = false;
  while (!paused_) {
    if (!has_room()) {
      paused_ = true;
      return;
    }
    auto fresh = listener_.accept();
    if (!fresh) {
      shortage_ = std::move(fresh).error();
      paused_ = !put_out_a_stranger(visitors_, silent_since);
      continue;
    }
    if (!fresh->valid()) return;
    visitors_.emplace_back(std::move(*fresh));
  }
}

bool Porter::has_room() {
  return visitors_.size() < most_strangers() || put_out_a_stranger(visitors_, silent_since);
}

void Porter::settle_all(Deadline deadline) {
  visitors_.remove_if([&](Visitor& visitor) { return settle(visitor, deadline); });
}

// True when the visitor is no visitor any more: a link now, or sent away.
bool Porter::settle(Visitor& visitor, Deadline deadline) {
  std::array<std::byte, 256> piece;
  const auto received = visitor.socket.receive_some(piece);
  if (!received) return true;
  if (*received > 0) visitor.silence.spoke();
  visitor.reader.feed(std::span(piece).first(*received));
  const auto frame = visitor.reader.next();
  if (!frame) return true;
  if (!*frame) return false;
  const auto hello = decode_hello_frame((*frame)->payload);
  if ((*frame)->kind != FrameKind::hello || !hello || !self_.knows(*hello) ||
      !expected_.contains(hello->rank)) {
    return true;
  }
  const HelloFrame mine = self_.hello_to(hello->rank);
  const Blob answer = encode_frame(FrameKind::hello, std::as_bytes(std::span(&mine, 1)));
  if (!visitor.socket.send_all(answer, deadline)) return true;
  expected_.erase(hello->rank);
  links_.emplace_back(hello->rank, std::move(visitor.socket));
  return true;
}

}  // namespace gdrx
