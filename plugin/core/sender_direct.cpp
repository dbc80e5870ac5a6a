// SPDX-License-Identifier: Apache-2.0
// Messages that go straight to their place: into memory that the receiver has named to the fabric,
// or into GPU memory that it has handed over.
#include <cstring>

#include "plugin/core/sender.hpp"

namespace gdrx::net {
namespace {

// Below, one message to the inbox and a copy are quicker than a write and a head.
constexpr Bytes kLeastDirect = 16 * 1024;

}  // namespace

Result<void> Sender::prepare_copies() {
  if (!copier_) copier_ = GDRX_TRY(gpu::Copier::create(kMaxSends));
  return {};
}

Result<std::optional<std::span<std::byte>>> Sender::gpu_target(const Item& item, Bytes size,
                                                               const Memory* memory) {
  if (size == 0) return std::optional(std::span<std::byte>());
  if (item.memory == 0 || lane().fabric() != "ucx") {
    if (memory == nullptr || !memory->gpu) return std::optional(std::span<std::byte>());
    return fail(Errc::unsupported, "GPU memory for a peer that receives in host memory");
  }
  if (!taker_) return fail(Errc::protocol, peer_name_ + " names GPU memory that it never gave");
  GDRX_TRY(prepare_copies());
  const auto memory_there = GDRX_TRY(taker_->find(item.memory));
  if (!memory_there) return std::optional<std::span<std::byte>>();
  if (item.offset > memory_there->size() || size > memory_there->size() - item.offset) {
    return fail(Errc::protocol, peer_name_ + " names GPU memory beyond what it gave");
  }
  return std::optional(
      memory_there->subspan(static_cast<std::size_t>(item.offset), static_cast<std::size_t>(size)));
}

// Before the head: messages of a pair are delivered in the order in which they were posted.
Result<Progress> Sender::post_direct(std::uint16_t slot) {
  Send& send = sends_[slot];
  if (send.copied) return copier_->poll(slot);
  if (send.written) return Progress::done;
  WriteOp op;
  op.payload = send.bytes;
  op.local = send.local;
  op.remote = send.region;
  op.offset = send.offset;
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

std::optional<RemoteRegionId> Sender::region_for(const Item& item, Bytes size,
                                                 const Memory* memory) {
  if (item.memory == 0 || size < kLeastDirect || memory == nullptr || !memory->region ||
      taker_ != nullptr) {
    return std::nullopt;
  }
  // Its description comes over another way than the group that names it.
  if (item.memory > given_.size() && !read_channel()) return std::nullopt;
  if (item.memory > given_.size()) return std::nullopt;
  const GivenRegion& given = given_[item.memory - 1];
  if (item.offset > given.bytes || size > given.bytes - item.offset) return std::nullopt;
  return given.region;
}

Result<void> Sender::on_frame(const Frame& frame) {
  Given given;
  const auto parts = GDRX_TRY(split_blobs(frame.payload, 2));
  if (frame.kind != FrameKind::data || parts[0].size() != sizeof given) {
    return fail(Errc::protocol, peer_name_ + " says what is not of the protocol");
  }
  std::memcpy(&given, parts[0].data(), sizeof given);
  if (given.magic != kMagic || given.id != given_.size() + 1) {
    return fail(Errc::protocol, peer_name_ + " gives a region out of turn");
  }
  given_.push_back({GDRX_TRY(endpoint_->import_region(parts[1])), given.bytes});
  return {};
}

}  // namespace gdrx::net
