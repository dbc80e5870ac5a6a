// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/sender.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace gdrx::net {

Result<std::unique_ptr<Sender>> Sender::create(std::shared_ptr<Lane> lane) {
  auto sender = std::unique_ptr<Sender>(new Sender(std::move(lane)));
  GDRX_TRY(sender->open());
  return sender;
}

Result<void> Sender::open() {
  board_ = std::make_unique<Board>();
  const auto bytes = std::as_writable_bytes(std::span(board_.get(), 1));
  board_region_ = GDRX_TRY(lane().device().register_memory(bytes, MemoryKind::host));
  free_.reserve(kMaxSends);
  for (std::size_t i = kMaxSends; i > 0; --i) free_.push_back(static_cast<std::uint16_t>(i - 1));
  return enter();
}

Sender::~Sender() {
  // NCCL frees the buffers next: nobody may read them any more.
  lane().settle([this] { return unwritten_ == 0 || !healthy(); });
  if (endpoint_ != nullptr) endpoint_->release_region(inbox_);
  if (board_region_) lane().forget(*board_region_);
}

Result<void> Sender::attach(const Welcome& welcome, std::span<const std::byte> address,
                            std::span<const std::byte> inbox_key, std::string peer_name) {
  if (welcome.comm == 0 || welcome.comm > 0xffff || welcome.chunks == 0 ||
      welcome.chunk_bytes <= kChunkHead || welcome.chunk_bytes > (Bytes{1} << 30)) {
    return fail(Errc::protocol, "an impossible inbox from " + peer_name);
  }
  Endpoint* endpoint = GDRX_TRY(lane().endpoint_to(welcome.lane, address));
  inbox_ = GDRX_TRY(endpoint->import_region(inbox_key));
  endpoint_ = endpoint;
  peer_comm_ = welcome.comm;
  chunks_ = welcome.chunks;
  chunk_bytes_ = welcome.chunk_bytes;
  peer_name_ = std::move(peer_name);
  count_as(stats::Way::send);
  return {};
}

Result<Progress> Sender::wire_up() {
  static constexpr std::uint64_t kNothing = 0;  // no chunk's head
  GDRX_TRY(healthy());
  if (!greeted_) {
    WriteOp op;
    op.header = std::as_bytes(std::span(&kNothing, 1));
    op.remote = inbox_;
    op.has_immediate = true;
    op.immediate = peer_comm_;
    op.cookie = cookie_of(index(), kNoSlot);
    greeted_ = GDRX_TRY(endpoint_->post(op)) == Progress::done;
  }
  GDRX_TRY(lane().poll());
  return greeted_ && board_->ready == 1 ? Progress::done : Progress::pending;
}

Result<std::optional<std::uint32_t>> Sender::match(int tag, Bytes* room) {
  const Group& group = board_->groups[group_ % kBoardGroups];
  if (group.sequence != group_) return std::optional<std::uint32_t>();
  if (group.count == 0 || group.count > kMaxGroup) {
    return fail(Errc::protocol, peer_name_ + " posted a group of an impossible size");
  }
  for (std::uint32_t i = 0; i < group.count; ++i) {
    if ((matched_ & 1U << i) != 0 || group.items[i].tag != tag) continue;
    matched_ |= 1U << i;
    *room = group.items[i].size;
    if (matched_ == (1U << group.count) - 1) {
      matched_ = 0;
      ++group_;
    }
    return std::optional(i);
  }
  return std::optional<std::uint32_t>();
}

Result<void*> Sender::isend(std::span<const std::byte> bytes, int tag, const MemoryRegion* local) {
  GDRX_TRY(healthy());
  if (free_.empty()) return nullptr;
  Bytes room = 0;
  const std::uint64_t group = group_;
  auto item = GDRX_TRY(match(tag, &room));
  if (!item) {
    GDRX_TRY(lane().poll());
    item = GDRX_TRY(match(tag, &room));
    if (!item) {
      counters_->waits.add(1);
      GDRX_TRY(look_at_peer());
      return nullptr;
    }
  }
  moved();
  const std::uint16_t slot = free_.back();
  free_.pop_back();
  Send& send = sends_[slot];
  send.active = true;
  send.queued = true;
  // More than the receive takes is cut: NCCL may do so with registered user buffers.
  send.bytes = bytes.first(static_cast<std::size_t>(std::min<Bytes>(bytes.size(), room)));
  send.local = local;
  send.group = group;
  send.item = *item;
  send.tag = tag;
  send.posted = 0;
  send.unwritten = 0;
  begun(&send.begun);
  send.size =
      static_cast<int>(std::min<Bytes>(send.bytes.size(), Bytes{std::numeric_limits<int>::max()}));
  queue_[(queue_first_ + queue_count_++) % kMaxSends] = slot;
  GDRX_TRY(pump());
  return encode({index(), slot, send.life});
}

// In order: the chunks of a message follow each other, and so do messages.
Result<void> Sender::pump() {
  while (queue_count_ > 0) {
    const std::uint16_t slot = queue_[queue_first_];
    if (GDRX_TRY(post_chunk(slot)) == Progress::pending) return {};
    if (sends_[slot].queued) continue;
    queue_first_ = (queue_first_ + 1) % kMaxSends;
    --queue_count_;
  }
  return {};
}

Result<Progress> Sender::post_chunk(std::uint16_t slot) {
  const std::uint64_t consumed = board_->consumed;
  if (consumed > next_chunk_) {
    return tl::unexpected(
        break_with(Error{Errc::protocol, peer_name_ + " claims chunks that were never sent"}));
  }
  if (next_chunk_ - consumed >= chunks_) return Progress::pending;
  Send& send = sends_[slot];
  ChunkHead head;
  head.sequence = next_chunk_ + 1;
  head.group = send.group;
  head.item = send.item;
  head.offset = send.posted;
  head.total = send.bytes.size();
  head.bytes = static_cast<std::uint32_t>(
      std::min<Bytes>(send.bytes.size() - send.posted, chunk_bytes_ - kChunkHead));
  std::array<std::byte, kChunkHead> padded{};
  std::memcpy(padded.data(), &head, sizeof head);
  WriteOp op;
  op.header = padded;
  op.payload = send.bytes.subspan(static_cast<std::size_t>(send.posted), head.bytes);
  op.local = send.local;
  op.remote = inbox_;
  op.offset = next_chunk_ % chunks_ * chunk_bytes_;
  op.has_immediate = true;
  op.immediate = peer_comm_;
  op.cookie = cookie_of(index(), slot);
  // Counted before: a fabric may report the write within post().
  ++send.unwritten;
  ++unwritten_;
  auto posted = endpoint_->post(op);
  if (!posted || *posted == Progress::pending) {
    --send.unwritten;
    --unwritten_;
    if (!posted) return tl::unexpected(break_with(std::move(posted).error()));
    return Progress::pending;
  }
  ++next_chunk_;
  counters_->chunks.add(1);
  send.posted += head.bytes;
  send.queued = send.posted < send.bytes.size();
  return Progress::done;
}

void Sender::on_written(std::uint32_t slot) {
  if (slot >= kMaxSends || sends_[slot].unwritten == 0) return;
  --sends_[slot].unwritten;
  --unwritten_;
  moved();
}

std::string Sender::state() const {
  const Send* oldest = nullptr;
  for (const Send& send : sends_) {
    if (send.active && (oldest == nullptr || send.begun < oldest->begun)) oldest = &send;
  }
  if (oldest == nullptr) return "a send waits for the peer to post a receive of its tag";
  return fmt::format(
      "send of {} bytes, tag {}: {} bytes posted, {} writes not done, {} of {} chunks of room",
      oldest->bytes.size(), oldest->tag, oldest->posted, oldest->unwritten,
      chunks_ - (next_chunk_ - board_->consumed), chunks_);
}

Result<Answer> Sender::test(RequestId id) {
  if (id.slot >= kMaxSends || !sends_[id.slot].active || sends_[id.slot].life != id.life) {
    return fail(Errc::invalid_argument, "test() of a request that is done already");
  }
  Send& send = sends_[id.slot];
  if (send.queued || send.unwritten > 0) {
    GDRX_TRY(lane().poll());
    GDRX_TRY(pump());
  }
  if (send.queued || send.unwritten > 0) {
    GDRX_TRY(healthy());
    GDRX_TRY(look_at_peer());
    return Answer{};
  }
  send.active = false;
  ++send.life;
  ended(send.begun, send.bytes.size(), send.bytes.size() <= chunk_bytes_ - kChunkHead);
  free_.push_back(id.slot);
  return Answer{Progress::done, 1, &send.size};
}

}  // namespace gdrx::net
