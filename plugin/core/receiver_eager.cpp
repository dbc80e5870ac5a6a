// SPDX-License-Identifier: Apache-2.0
// Small messages that come before their receive is posted: see sender_eager.cpp.
#include <algorithm>
#include <bit>
#include <cstring>

#include "plugin/core/copy.hpp"
#include "plugin/core/receiver.hpp"

namespace gdrx::net {

Result<void> Receiver::take_eager(const ChunkHead& head, const std::byte* bytes) {
  if (eager_memory_.empty() || eager_.full() || head.bytes > kEagerBytes ||
      head.total != head.bytes || head.offset != 0 || head.direct != 0) {
    return fail(Errc::protocol, peer_name_ + " sent an eager message that cannot be one");
  }
  const int tag = static_cast<int>(head.item);
  // What waits has no receive yet, so that nothing of its tag is overtaken here.
  if (const auto item = open_item(tag)) {
    GDRX_TRY(deliver(*item, {bytes, head.bytes}));
    return match_eager();
  }
  const auto place = static_cast<std::uint8_t>(std::countr_one(eager_places_));
  eager_places_ |= 1U << place;
  std::memcpy(eager_memory_.data() + place * kEagerBytes, bytes, head.bytes);
  eager_.push_back({tag, static_cast<std::uint16_t>(head.bytes), place});
  return {};
}

std::optional<std::uint32_t> Receiver::open_item(int tag) const noexcept {
  const std::size_t place = claiming_ % kClearToSendGroups;
  const Receive& receive = receives_[place];
  if (!receive.active || receive.group != claiming_) return std::nullopt;
  for (std::uint32_t i = 0; i < receive.count; ++i) {
    if ((claimed_ & 1U << i) == 0 && groups_[place].items[i].tag == tag) return i;
  }
  return std::nullopt;
}

Result<void> Receiver::deliver(std::uint32_t item, std::span<const std::byte> bytes) {
  Receive& receive = receives_[claiming_ % kClearToSendGroups];
  GDRX_TRY(mark(claiming_, item));
  const std::span<std::byte> target = receive.targets[item];
  bytes = bytes.first(std::min(bytes.size(), target.size()));  // the rest is cut
  if (!receive.gone[item]) copy_in_order(target.data(), bytes.data(), bytes.size());
  receive.got[item] = bytes.size();
  counters_->eager.add(1);
  finish(receive, item);
  return {};
}

Result<void> Receiver::match_eager() {
  return eager_.match([this](const Eager& waiting) -> Result<bool> {
    const auto item = open_item(waiting.tag);
    if (!item) return false;
    GDRX_TRY(deliver(*item, {eager_memory_.data() + waiting.place * kEagerBytes, waiting.bytes}));
    eager_places_ &= ~(1U << waiting.place);
    return true;
  });
}

}  // namespace gdrx::net
