// SPDX-License-Identifier: Apache-2.0
// Clear to send: what the sender's clear-to-send ring says of receives. A packet for each of them
// costs a NIC, and a processor that plays one, as much as a packet of data; so where a sender has
// others to go on with, the newest ones wait for each other.
#include <algorithm>
#include <cstddef>

#include "plugin/core/receiver.hpp"

namespace gdrx::net {
namespace {

// So much goes over the fabric in one piece: the sender never sees half a group.
constexpr std::size_t kOnePiece = 1024;
constexpr std::size_t kClearToSendBatch = kOnePiece / sizeof(Group);
// What the sender has to have, of what has not come: then it does not miss those that wait.
constexpr std::uint64_t kAhead = 4;
// Below, a sender may be through with all of that before it can be told of more.
constexpr Bytes kLarge = 32 * 1024;

}  // namespace

bool Receiver::may_wait() const noexcept {
  if (next_group_ - told_ >= kClearToSendBatch || told_ < claiming_ + kAhead) return false;
  const Group& newest = groups_[(next_group_ - 1) % kClearToSendGroups];
  return std::all_of(newest.items.begin(), newest.items.begin() + newest.count,
                     [](const Item& item) { return item.size >= kLarge; });
}

Result<void> Receiver::tell_groups() {
  while (told_ < next_group_ && !may_wait()) {
    const std::size_t first = told_ % kClearToSendGroups;
    const std::size_t count =
        std::min<std::size_t>({static_cast<std::size_t>(next_group_ - told_), kClearToSendBatch,
                               kClearToSendGroups - first});
    const Group& last = groups_[first + count - 1];
    const auto bytes = std::as_bytes(std::span(groups_).subspan(first, count));
    WriteOp op;
    op.payload = bytes.first(bytes.size() - sizeof(Group) + offsetof(Group, items) +
                             last.count * sizeof(Item));
    op.remote = clear_to_send_;
    op.offset = offsetof(ClearToSendRing, groups) + first * sizeof(Group);
    op.cookie = cookie_of(index(), kNoSlot);
    auto posted = endpoint_->post(op);
    if (!posted) return tl::unexpected(break_with(std::move(posted).error()));
    if (*posted == Progress::pending) return {};
    told_ += count;
  }
  return {};
}

}  // namespace gdrx::net
