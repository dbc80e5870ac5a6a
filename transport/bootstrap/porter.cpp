// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/porter.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "transport/bootstrap/text.hpp"

namespace gdrx {
namespace {

using std::chrono::milliseconds;

constexpr Duration kPausedSleep = milliseconds(50);  // while nobody is let in
constexpr Duration kPorterSleep = milliseconds(1000);
constexpr auto visitor_silent_since = [](const auto& visitor) { return visitor.silence.since(); };

}  // namespace

Result<std::vector<MeshLink>> Porter::admit(MeshCalls& calls, Deadline deadline) {
  while (!expected_.empty() || !calls.done()) {
    wait(calls, deadline);
    settle_all();  // before somebody is put out
    accept_some();
    settle_all();
    GDRX_TRY(calls.step(deadline));
    if (!expected_.empty() && deadline.passed(steady_clock().now())) {
      const std::vector<std::int32_t> missing(expected_.begin(), expected_.end());
      return fail(Errc::timeout,
                  fmt::format("{} did not open a control connection to rank {} in time{}{}",
                              name_ranks(missing), self_.rank, shortage_ ? ": " : "",
                              shortage_ ? shortage_->what : Text()));
    }
  }
  return std::move(links_);
}

void Porter::wait(MeshCalls& calls, Deadline deadline) {
  std::vector<pollfd> entries;
  const bool paused = admission_.paused();
  Duration longest = paused ? kPausedSleep : kPorterSleep;
  if (!paused) entries.push_back({listener_.fd(), POLLIN, 0});
  for (Visitor& visitor : visitors_) {
    const bool unsent = visitor.socket.unsent();
    const int events = POLLIN | visitor.shortage.events(unsent, visitor.socket, longest);
    entries.push_back({visitor.socket.fd(), static_cast<short>(events), 0});
  }
  calls.prepare_poll(entries, longest);
  const auto ms = std::chrono::ceil<milliseconds>(longest).count();
  poll(entries.data(), entries.size(), std::min(static_cast<int>(ms), poll_milliseconds(deadline)));
}

void Porter::accept_some() {
  auto news = admission_.turn(
      listener_, [this] { return visitors_.size(); },
      [this] { return put_out_a_stranger(visitors_, visitor_silent_since); },
      [this](Socket fresh) {
        auto secure = SecureSocket::server(
            std::move(fresh), [this](std::string_view identity) { return find(identity); });
        if (secure) visitors_.emplace_back(std::move(*secure));
      });
  if (news) shortage_ = std::move(news);
}

void Porter::settle_all() {
  visitors_.remove_if([&](Visitor& visitor) { return settle(visitor); });
}

std::optional<Key> Porter::find(std::string_view identity) const {
  const auto ends = read_link_identity(identity);
  if (!ends || ends->second != self_.rank || !expected_.contains(ends->first)) return std::nullopt;
  const auto key = self_.link_key(ends->first, ends->second);
  return key ? std::optional<Key>(*key) : std::nullopt;
}

// True when the visitor is no visitor any more: a link now, or sent away.
bool Porter::settle(Visitor& visitor) {
  const std::uint64_t before = visitor.socket.heard();
  const auto shaken = visitor.socket.handshake();
  if (!shaken) return true;
  if (visitor.socket.heard() > before) visitor.silence.spoke();
  if (*shaken == Progress::pending) return false;
  const auto ends = read_link_identity(visitor.socket.identity());
  // Two may have come for one place.
  if (!ends || expected_.erase(ends->first) == 0) return true;
  links_.emplace_back(ends->first, std::move(visitor.socket));
  return true;
}

}  // namespace gdrx
