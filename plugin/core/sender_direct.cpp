// SPDX-License-Identifier: Apache-2.0
// Messages that go straight to their place: into memory that the receiver has named to the fabric,
// or into GPU memory that it has handed over.
#include <algorithm>
#include <cstring>

#include "plugin/core/sender.hpp"

namespace gdrx::net {
namespace {

// Below, one message to the receive ring and a copy are quicker than a write and a head.
constexpr Bytes kLeastDirect = 16 * 1024;

}  // namespace

Result<void> Sender::prepare_copies() {
  if (!copier_) copier_ = GDRX_TRY(gpu::Copier::create(kMaxSends));
  return {};
}

Result<Sender::Route> Sender::route(const Item& item, Bytes size, const Memory* memory) {
  const std::uint32_t id = item.memory & ~kOnlyDirect;
  const bool only_direct = (item.memory & kOnlyDirect) != 0;
  if (size == 0) return Route{};
  if (device_context().fabric() == "ucx") {
    if (id != 0) return route_to_gpu(id, item.offset, size);
    if (memory == nullptr || !memory->gpu) return Route{};
    return fail(Errc::unsupported, "GPU memory for a peer that receives in host memory");
  }
  // What is not registered would be copied for a write, too.
  if (id == 0 || (!only_direct && (size < kLeastDirect || memory == nullptr))) return Route{};
  // Its description comes over another way than the group that names it.
  const bool known = id <= last_given_ || (read_channel() && id <= last_given_);
  if (!known) return Route{only_direct ? Route::Way::later : Route::Way::receive_ring, {}, {}};
  const GivenRegion* given = find_given(id);
  if (given == nullptr || item.offset > given->bytes || size > given->bytes - item.offset) {
    return fail(Errc::protocol, peer_name_ + " names memory beyond what it gave");
  }
  return Route{Route::Way::write, {}, given->region};
}

Result<Sender::Route> Sender::route_to_gpu(std::uint32_t id, Bytes offset, Bytes size) {
  if (!importer_) return fail(Errc::protocol, peer_name_ + " names GPU memory that it never gave");
  GDRX_TRY(prepare_copies());
  const auto there = GDRX_TRY(importer_->find(id, copier_->context()));
  if (!there) return Route{Route::Way::later, {}, {}};
  if (offset > there->size() || size > there->size() - offset) {
    return fail(Errc::protocol, peer_name_ + " names GPU memory beyond what it gave");
  }
  const auto part =
      there->subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
  return Route{Route::Way::copy, part, {}};
}

// Before the head: messages of a pair are delivered in the order in which they were posted.
Result<Progress> Sender::post_direct(std::uint16_t slot) {
  Send& send = sends_[slot];
  if (send.copied) {
    auto copied = copier_->poll(slot);
    if (!copied) return tl::unexpected(break_with(std::move(copied).error()));
    return *copied;
  }
  if (send.written) return Progress::done;
  WriteOp op;
  op.payload = send.bytes;
  op.local = send.local ? send.local->region() : nullptr;
  op.remote = send.region;
  op.offset = send.offset;
  op.has_immediate = send.filled;
  op.immediate = peer_filled_;
  op.cookie = cookie_of(index(), slot);
  ++send.unwritten;
  ++unwritten_;
  auto posted = endpoint_->post(op);
  send.written = posted && *posted == Progress::done;
  if (!send.written) {
    --send.unwritten;
    --unwritten_;
  }
  if (!posted) return tl::unexpected(break_with(std::move(posted).error()));
  return *posted;
}

Result<void> Sender::on_frame(const Frame& frame) {
  Given given;
  const auto parts = GDRX_TRY(split_blobs(frame.payload, 2));
  if (frame.kind != FrameKind::data || parts[0].size() != sizeof given) {
    return fail(Errc::protocol, peer_name_ + " says what is not of the protocol");
  }
  std::memcpy(&given, parts[0].data(), sizeof given);
  if (given.magic == kMagic && given.bytes == 0) return forget_given(given.id);
  if (given.magic != kMagic || given.id != last_given_ + 1) {
    return fail(Errc::protocol, peer_name_ + " gives a region out of turn");
  }
  const RemoteRegionId region = GDRX_TRY(endpoint_->import_region(parts[1]));
  given_.push_back({given.id, region, given.bytes});
  last_given_ = given.id;
  return {};
}

const Sender::GivenRegion* Sender::find_given(std::uint32_t id) const noexcept {
  const auto found = std::lower_bound(
      given_.begin(), given_.end(), id,
      [](const GivenRegion& one, std::uint32_t wanted) { return one.id < wanted; });
  return found != given_.end() && found->id == id ? &*found : nullptr;
}

Result<void> Sender::forget_given(std::uint32_t id) {
  const GivenRegion* found = find_given(id);
  if (found == nullptr) {
    return fail(Errc::protocol, peer_name_ + " takes back a region that it has not given");
  }
  const GivenRegion given = *found;
  given_.erase(given_.begin() + (found - given_.data()));
  // Of a receiver that aborts: a write that waits for room may name it still.
  for (const Send& send : sends_) {
    if (send.active && send.queued && send.direct && send.region == given.region) return {};
  }
  endpoint_->release_region(given.region);
  return {};
}

}  // namespace gdrx::net
