// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/common.hpp"

#include "transport/shm/device.hpp"

namespace gdrx::shm {
namespace {

std::size_t place_of(Rank rank) noexcept { return static_cast<std::size_t>(index(rank)); }

}  // namespace

std::size_t CommonLayout::mailbox_at(Rank rank) const noexcept {
  const std::size_t part = whole_pages(Mailbox::bytes(ranks)) + whole_pages(allocated);
  return whole_pages(before) + place_of(rank) * part;
}

std::size_t CommonLayout::allocated_at(Rank rank) const noexcept {
  return mailbox_at(rank) + whole_pages(Mailbox::bytes(ranks));
}

std::size_t CommonLayout::bytes() const noexcept {
  return mailbox_at(Rank{static_cast<std::int32_t>(ranks)});
}

Blob CommonLayout::address(const ArenaTicket& ticket, Rank rank) const {
  return blob_of(Address{.ranks = ranks, .memory = ticket, .offset = mailbox_at(rank)});
}

Blob CommonLayout::region_key(const ArenaTicket& ticket, Rank rank) const {
  return blob_of(
      RegionKey{.region = 0, .memory = ticket, .offset = allocated_at(rank), .bytes = allocated});
}

Result<std::shared_ptr<Device>> open_device(const CommonLayout& layout,
                                            const std::shared_ptr<Segment>& segment, Rank self) {
  const std::span<std::byte> all = segment->bytes();
  if (all.size() < layout.bytes()) return fail(Errc::internal, "memory without room for its ranks");
  const auto part = [&](std::size_t at, std::size_t bytes) {
    return Part{segment, all.subspan(at, bytes)};
  };
  std::shared_ptr<Device> device = GDRX_TRY(ShmDevice::create(
      self, layout.ranks, part(layout.mailbox_at(self), Mailbox::bytes(layout.ranks)),
      part(layout.allocated_at(self), layout.allocated)));
  return device;
}

}  // namespace gdrx::shm
