// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/endpoint.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstring>

namespace gdrx::shm {
namespace {

// A word of eight bytes, such as a credit, is read while it is written: at once or not at all.
bool is_a_word(const WriteOp& op, const std::byte* to) noexcept {
  return op.header.size() == sizeof(std::uint64_t) && op.payload.empty() &&
         reinterpret_cast<std::uintptr_t>(to) % sizeof(std::uint64_t) == 0;
}

void store(const WriteOp& op, std::byte* to) noexcept {
  if (is_a_word(op, to)) {
    std::uint64_t word = 0;
    std::memcpy(&word, op.header.data(), sizeof word);
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(to))
        .store(word, std::memory_order_release);
    return;
  }
  if (!op.header.empty()) std::memcpy(to, op.header.data(), op.header.size());
  if (!op.payload.empty()) {
    std::memcpy(to + op.header.size(), op.payload.data(), op.payload.size());
  }
}

}  // namespace

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
  if (theirs.magic != kMagic || !known || theirs.ranks != endpoint->device_->ranks() ||
      theirs.mailbox.bytes != Mailbox::bytes(theirs.ranks)) {
    return fail(Errc::protocol,
                fmt::format("rank {} has an shm address of another form or size", index(peer)));
  }
  auto segment = Segment::open(theirs.mailbox);
  if (!segment) return endpoint->cannot_map(std::move(segment).error());
  endpoint->segment_ = std::move(*segment);
  endpoint->mailbox_ = Mailbox(endpoint->segment_->bytes(), theirs.ranks);
  return endpoint;
}

tl::unexpected<Error> ShmEndpoint::cannot_map(Error error) const {
  const bool lost = error.code == Errc::peer_lost;
  return fail(error.code, fmt::format("the memory of rank {} {}: {}", index(peer_),
                                      lost ? "is gone with its process" : "cannot be mapped",
                                      gdrx::describe(error)));
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
  auto segment = Segment::open(theirs.memory);
  if (!segment) return cannot_map(std::move(segment).error());
  const std::uint32_t place = free_.back();
  free_.pop_back();
  const std::span<std::byte> bytes = (*segment)->bytes();
  remotes_[place] = {std::move(*segment), bytes, static_cast<std::uint16_t>(theirs.region)};
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
  if (op.header.size() > kMaxWriteHeader || op.offset > remote.bytes.size() ||
      length > remote.bytes.size() - op.offset) {
    return fail(Errc::internal, "a write beyond its region");
  }
  if (!device_->done().has_room() || (op.has_immediate && !has_room())) return Progress::pending;
  store(op, remote.bytes.data() + op.offset);
  if (op.has_immediate) {
    const std::uint16_t number = ++device_->sent(peer_).told;
    mailbox_.tell(device_->self(), {number, remote.number, op.immediate});
  }
  device_->done().push(peer_, op.cookie);
  return Progress::done;
}

}  // namespace gdrx::shm
