// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/porter.hpp"

#include <poll.h>

#include <algorithm>
#include <array>

#include "transport/bootstrap/text.hpp"

namespace gdrx {
namespace {

constexpr std::size_t kMostVisitors = 256;

}  // namespace

Result<std::vector<MeshLink>> Porter::admit(Deadline deadline) {
  while (!expected_.empty()) {
    wait(deadline);
    GDRX_TRY(accept_all());
    visitors_.remove_if([&](Visitor& visitor) { return settle(visitor, deadline); });
    if (!expected_.empty() && deadline.passed(steady_clock().now())) {
      const std::vector<std::int32_t> missing(expected_.begin(), expected_.end());
      return fail(Errc::timeout, name_ranks(missing) +
                                     " did not open a control connection to rank " +
                                     std::to_string(self_.rank) + " in time");
    }
  }
  return std::move(links_);
}

void Porter::wait(Deadline deadline) {
  std::vector<pollfd> entries{{listener_.fd(), POLLIN, 0}};
  for (const Visitor& visitor : visitors_) entries.push_back({visitor.socket.fd(), POLLIN, 0});
  poll(entries.data(), entries.size(), std::min(1000, poll_milliseconds(deadline)));
}

Result<void> Porter::accept_all() {
  while (true) {
    Socket fresh = GDRX_TRY(listener_.accept());
    if (!fresh.valid()) return {};
    // A rank says hello at once: the oldest who has not is the least likely to be one.
    if (visitors_.size() == kMostVisitors) visitors_.pop_front();
    visitors_.emplace_back(std::move(fresh));
  }
}

// True when the visitor is no visitor any more: a link now, or sent away.
bool Porter::settle(Visitor& visitor, Deadline deadline) {
  std::array<std::byte, 256> piece;
  const auto received = visitor.socket.receive_some(piece);
  if (!received) return true;
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
