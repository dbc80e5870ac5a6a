// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/endpoint.hpp"

#include <fmt/format.h>

#include <cstring>

#include "transport/shm/put.hpp"

namespace gdrx::shm {

Result<std::unique_ptr<ShmEndpoint>> ShmEndpoint::create(std::shared_ptr<ShmDevice> device,
                                                         Rank peer,
                                                         std::span<const std::byte> address) {
  auto endpoint = std::unique_ptr<ShmEndpoint>(new ShmEndpoint(std::move(device), peer));
  Address theirs;
  if (address.size() != sizeof theirs) {
    return fail(Errc::protocol,
                fmt::format("rank {} has an shm address of {} bytes", index(peer), address.size()));
  }
  std::memcpy(&theirs, address.data(), sizeof theirs);
  const bool known = index(peer) >= 0 && static_cast<std::uint32_t>(index(peer)) < theirs.ranks;
  if (theirs.magic != kMagic || !known || theirs.ranks != endpoint->device_->ranks()) {
    return fail(Errc::protocol,
                fmt::format("rank {} has an shm address of another form", index(peer)));
  }
  endpoint->mailbox_part_ =
      GDRX_TRY(endpoint->map(theirs.memory, theirs.offset, Mailbox::bytes(theirs.ranks)));
  endpoint->mailbox_ = Mailbox(endpoint->mailbox_part_.bytes, theirs.ranks);
  return endpoint;
}

Result<Part> ShmEndpoint::map(const ArenaTicket& memory, std::uint64_t offset,
                              std::uint64_t bytes) const {
  auto segment = Segment::open(memory);
  if (!segment) {
    const Error& error = segment.error();
    const bool lost = error.code == Errc::peer_lost;
    return fail(error.code, fmt::format("the memory of rank {} {}: {}", index(peer_),
                                        lost ? "is gone with its process" : "cannot be mapped",
                                        gdrx::describe(error)));
  }
  const std::span<std::byte> all = (*segment)->bytes();
  if (offset % kPage != 0 || offset > all.size() || bytes > all.size() - offset) {
    return fail(Errc::protocol, fmt::format("rank {} told of {} bytes at {} where there are {}",
                                            index(peer_), bytes, offset, all.size()));
  }
  return Part{*std::move(segment), all.subspan(offset, bytes)};
}

Result<RemoteRegionId> ShmEndpoint::import_region(std::span<const std::byte> key) {
  RegionKey theirs;
  if (key.size() != sizeof theirs) {
    return fail(Errc::protocol,
                fmt::format("rank {} sent a region key of {} bytes", index(peer_), key.size()));
  }
  std::memcpy(&theirs, key.data(), sizeof theirs);
  if (theirs.magic != kMagic || theirs.region > UINT16_MAX) {
    return fail(Errc::protocol,
                fmt::format("rank {} sent a region key of another form", index(peer_)));
  }
  if (theirs.memory.pid == 0) {
    return fail(Errc::unsupported,
                fmt::format("the region of rank {} is memory of its own process: "
                            "shm writes to what allocate_memory() gave",
                            index(peer_)));
  }
  if (free_.empty()) {  // before there is something to keep
    free_.reserve(remotes_.size() + 1);
    remotes_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(remotes_.size() - 1));
  }
  Part part = GDRX_TRY(map(theirs.memory, theirs.offset, theirs.bytes));
  const std::uint32_t place = free_.back();
  free_.pop_back();
  remotes_[place] = {std::move(part), static_cast<std::uint16_t>(theirs.region)};
  return static_cast<RemoteRegionId>(place);
}

void ShmEndpoint::release_region(RemoteRegionId region) noexcept {
  remotes_[static_cast<std::size_t>(region)] = {};
  free_.push_back(static_cast<std::uint32_t>(region));  // has room
}

// In the ring at the peer. What it says that it has taken is looked at only when that may matter.
bool ShmEndpoint::has_room() noexcept {
  ShmDevice::Sent& sent = device_->sent(peer_);
  if (static_cast<std::uint16_t>(sent.told - sent.taken) < kRing) return true;
  sent.taken = mailbox_.taken(device_->self());
  return static_cast<std::uint16_t>(sent.told - sent.taken) < kRing;
}

Result<Progress> ShmEndpoint::post(const WriteOp& op) {
  if (const Error* lost = error()) return tl::unexpected(*lost);
  const Remote& remote = remotes_[static_cast<std::size_t>(op.remote)];
  const std::uint64_t length = op.header.size() + op.payload.size();
  const std::span<std::byte> to = remote.memory.bytes;
  if (op.header.size() > kMaxWriteHeader || op.offset > to.size() ||
      length > to.size() - op.offset) {
    return fail(Errc::internal, "a write beyond its region");
  }
  if (!device_->done().has_room() || (op.has_immediate && !has_room())) return Progress::pending;
  put(op, to.data() + op.offset);
  if (op.has_immediate) {
    const std::uint16_t number = ++device_->sent(peer_).told;
    mailbox_.tell(device_->self(), {number, remote.number, op.immediate});
  }
  device_->done().push(peer_, op.cookie);
  return Progress::done;
}

}  // namespace gdrx::shm
