// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/acceptor.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "transport/bootstrap/rank_names.hpp"

namespace gdrx {
namespace {

using std::chrono::milliseconds;

constexpr Duration kPausedSleep = milliseconds(50);  // while nobody is let in
constexpr Duration kAcceptorSleep = milliseconds(1000);
constexpr auto pending_silent_since = [](const auto& pending) { return pending.silence.since(); };

}  // namespace

Result<std::vector<MeshLink>> Acceptor::admit(MeshCalls& calls, Deadline deadline) {
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

void Acceptor::wait(MeshCalls& calls, Deadline deadline) {
  std::vector<pollfd> entries;
  const bool paused = admission_.paused();
  Duration longest = paused ? kPausedSleep : kAcceptorSleep;
  if (!paused) entries.push_back({listener_.fd(), POLLIN, 0});
  for (PendingPeer& pending : pending_) {
    const bool unsent = pending.socket.unsent();
    const int events = POLLIN | pending.shortage.events(unsent, pending.socket, longest);
    entries.push_back({pending.socket.fd(), static_cast<short>(events), 0});
  }
  calls.prepare_poll(entries, longest);
  const auto ms = std::chrono::ceil<milliseconds>(longest).count();
  poll(entries.data(), entries.size(), std::min(static_cast<int>(ms), poll_milliseconds(deadline)));
}

void Acceptor::accept_some() {
  auto news = admission_.turn(
      listener_, [this] { return pending_.size(); },
      [this] { return put_out_a_stranger(pending_, pending_silent_since); },
      [this](Socket fresh) {
        auto secure = SecureSocket::server(
            std::move(fresh), [this](std::string_view identity) { return find(identity); });
        if (secure) pending_.emplace_back(std::move(*secure));
      });
  if (news) shortage_ = std::move(news);
}

void Acceptor::settle_all() {
  pending_.remove_if([&](PendingPeer& pending) { return settle(pending); });
}

std::optional<Key> Acceptor::find(std::string_view identity) const {
  const auto ends = read_link_identity(identity);
  if (!ends || ends->second != self_.rank || !expected_.contains(ends->first)) return std::nullopt;
  const auto key = self_.link_key(ends->first, ends->second);
  return key ? std::optional<Key>(*key) : std::nullopt;
}

// True when it is pending no more: a link now, or sent away.
bool Acceptor::settle(PendingPeer& pending) {
  const std::uint64_t before = pending.socket.heard();
  const auto shaken = pending.socket.handshake();
  if (!shaken) return true;
  if (pending.socket.heard() > before) pending.silence.spoke();
  if (*shaken == Progress::pending) return false;
  const auto ends = read_link_identity(pending.socket.identity());
  // Two may have come for one place.
  if (!ends || expected_.erase(ends->first) == 0) return true;
  links_.emplace_back(ends->first, std::move(pending.socket));
  return true;
}

}  // namespace gdrx
