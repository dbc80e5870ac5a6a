// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/sender.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "plugin/core/copy.hpp"

namespace gdrx::net {
namespace {

constexpr std::uint32_t kMostChunks = 4096;

}  // namespace

Result<std::unique_ptr<Sender>> Sender::create(std::shared_ptr<DeviceContext> device_context) {
  auto sender = std::unique_ptr<Sender>(new Sender(std::move(device_context)));
  GDRX_TRY(sender->open());
  return sender;
}

Result<void> Sender::open() {
  clear_to_send_memory_ = GDRX_TRY(Pages::create(sizeof(ClearToSendRing)));
  clear_to_send_ = new (clear_to_send_memory_.data()) ClearToSendRing;
  clear_to_send_region_ = GDRX_TRY(
      device_context().device().register_memory(clear_to_send_memory_.bytes(), MemoryKind::host));
  free_.reserve(kMaxSends);
  for (std::size_t i = kMaxSends; i > 0; --i) free_.push_back(static_cast<std::uint16_t>(i - 1));
  return enter();
}

Sender::~Sender() {
  copier_.reset();
  finish_staged();
  // Buffers that were never registered may be freed next: nobody may read them any more.
  device_context().drain([this] { return unwritten_ == 0 || !healthy(); });
  if (endpoint_ != nullptr) {
    endpoint_->release_region(receive_ring_);
    for (const GivenRegion& given : given_) endpoint_->release_region(given.region);
  }
  if (clear_to_send_region_) device_context().forget(*clear_to_send_region_);
}

Result<void> Sender::attach(const Welcome& welcome, std::span<const std::byte> address,
                            std::span<const std::byte> receive_ring_key, std::string peer_name) {
  if (welcome.comm == 0 || welcome.comm > 0xffff || welcome.filled == 0 ||
      welcome.filled > 0xffff || welcome.chunks == 0 || welcome.chunks > kMostChunks ||
      welcome.chunk_bytes < kChunkHead + kLine || welcome.chunk_bytes > (Bytes{1} << 30)) {
    return fail(Errc::protocol, "an impossible receive ring from " + peer_name);
  }
  Endpoint* endpoint = GDRX_TRY(device_context().endpoint_to(welcome.device_context, address));
  receive_ring_ = GDRX_TRY(endpoint->import_region(receive_ring_key));
  reached_over(*endpoint);
  peer_comm_ = welcome.comm;
  peer_filled_ = welcome.filled;
  eager_ = welcome.eager == 1;
  chunks_ = welcome.chunks;
  chunk_bytes_ = welcome.chunk_bytes;
  // No line in two chunks, which two threads may copy.
  most_in_chunk_ = (chunk_bytes_ - kChunkHead) / kLine * kLine;
  prepare_staging();
  peer_name_ = std::move(peer_name);
  count_as(stats::Way::send);
  if (welcome.gpu == gpu::SocketName{}) return {};
  if (!device_context().config().net_gpu) {
    return fail(Errc::mismatch, peer_name_ + " takes GPU memory: set GDRX_NET_GPU alike");
  }
  importer_ = GDRX_TRY(gpu::IpcImporter::connect(welcome.gpu));
  // Here if this thread has a context: not where NCCL's kernels run already.
  if (gpu::OwnContext::has_gpu()) GDRX_TRY(prepare_copies());
  return {};
}

Result<Progress> Sender::wire_up() {
  static constexpr std::uint64_t kNothing = 0;  // no chunk's head
  GDRX_TRY(healthy());
  if (!greeted_) {
    WriteOp op;
    op.header = std::as_bytes(std::span(&kNothing, 1));
    op.remote = receive_ring_;
    op.has_immediate = true;
    op.immediate = peer_comm_;
    op.cookie = cookie_of(index(), kNoSlot);
    greeted_ = GDRX_TRY(endpoint_->post(op)) == Progress::done;
  }
  GDRX_TRY(device_context().poll());
  return greeted_ && clear_to_send_->ready == 1 ? Progress::done : Progress::pending;
}

Result<const Group*> Sender::open_group() const {
  const Group& group = clear_to_send_->groups[group_ % kClearToSendGroups];
  if (group.sequence != group_) return nullptr;
  if (group.count == 0 || group.count > kMaxGroup) {
    return fail(Errc::protocol, peer_name_ + " posted a group of an impossible size");
  }
  return &group;
}

std::optional<std::uint32_t> Sender::open_item(const Group& group, int tag) const noexcept {
  for (std::uint32_t i = 0; i < group.count; ++i) {
    if ((matched_ & 1U << i) == 0 && group.items[i].tag == tag) return i;
  }
  return std::nullopt;
}

Result<std::optional<std::uint32_t>> Sender::match(int tag) {
  if (eager_tags_.size() > 0) GDRX_TRY(match_eager());
  const Group* group = GDRX_TRY(open_group());
  if (group == nullptr) return std::optional<std::uint32_t>();
  return open_item(*group, tag);
}

void Sender::take_item(std::uint32_t item) noexcept {
  matched_ |= 1U << item;
  if (matched_ != (1U << clear_to_send_->groups[group_ % kClearToSendGroups].count) - 1) return;
  matched_ = 0;
  ++group_;
}

// What the receiver knows without being told: the first item that no message has come for.
bool Sender::is_next(std::uint32_t item) const noexcept {
  return (matched_ & ((1U << item) - 1)) == (1U << item) - 1;
}

Result<void*> Sender::isend(std::span<const std::byte> bytes, int tag, const Memory* memory) {
  GDRX_TRY(healthy());
  if (free_.empty()) return nullptr;
  auto found = GDRX_TRY(match(tag));
  if (!found) {
    GDRX_TRY(device_context().poll());
    found = GDRX_TRY(match(tag));
  }
  if (!found && may_go_eagerly(bytes, memory)) {
    const std::uint16_t slot = begin(bytes, tag, memory);
    sends_[slot].item = static_cast<std::uint32_t>(tag);
    eager_tags_.push_back(tag);
    counters_->eager.add(1);
    return send(slot);
  }
  if (!found) {
    counters_->waits.add(1);
    GDRX_TRY(look_at_peer());
    return nullptr;
  }
  const Item& item = clear_to_send_->groups[group_ % kClearToSendGroups].items[*found];
  // More than the receive takes is cut: NCCL may do so with registered user buffers.
  bytes = bytes.first(static_cast<std::size_t>(std::min<Bytes>(bytes.size(), item.size)));
  const Route to = GDRX_TRY(route(item, bytes.size(), memory));
  if (to.way == Route::Way::later) {
    GDRX_TRY(look_at_peer());
    return nullptr;
  }
  if (to.way == Route::Way::copy) {
    const bool from_host = memory == nullptr || !memory->gpu;
    auto started = copier_->start(free_.back(), to.target.data(), bytes, from_host);
    if (!started) return tl::unexpected(break_with(std::move(started).error()));
    if (*started == Progress::pending) return nullptr;
  }
  const std::uint16_t slot = begin(bytes, tag, memory);
  Send& send_to = sends_[slot];
  send_to.copied = to.way == Route::Way::copy;
  send_to.direct = to.way != Route::Way::receive_ring;
  send_to.filled = to.way == Route::Way::write && bytes.size() == item.size && is_next(*found);
  send_to.region = to.region;
  send_to.offset = item.offset;
  send_to.group = group_;
  send_to.item = *found;
  take_item(*found);
  return send(slot);
}

std::uint16_t Sender::begin(std::span<const std::byte> bytes, int tag,
                            const Memory* memory) noexcept {
  const std::uint16_t slot = free_.back();
  free_.pop_back();
  Send& fresh = sends_[slot];
  const std::uint32_t life = fresh.life;
  fresh = {};
  fresh.life = life;
  fresh.active = true;
  fresh.queued = true;
  fresh.bytes = bytes;
  if (memory != nullptr) fresh.local = memory->registration;
  fresh.tag = tag;
  fresh.size =
      static_cast<int>(std::min<Bytes>(bytes.size(), Bytes{std::numeric_limits<int>::max()}));
  begun(&fresh.begun);
  moved();
  return slot;
}

Result<void*> Sender::send(std::uint16_t slot) {
  queue_[(queue_first_ + queue_count_++) % kMaxSends] = slot;
  GDRX_TRY(pump());
  return encode({index(), slot, sends_[slot].life});
}

// In order: the chunks of a message follow each other, and so do messages.
Result<void> Sender::pump() {
  while (queue_count_ > 0) {
    const std::uint16_t slot = queue_[queue_first_];
    if (GDRX_TRY(post_chunk(slot)) == Progress::pending) break;
    if (sends_[slot].queued) continue;
    queue_first_ = (queue_first_ + 1) % kMaxSends;
    --queue_count_;
  }
  GDRX_TRY(post_staged());
  return {};
}

Result<Progress> Sender::post_chunk(std::uint16_t slot) {
  if (sends_[slot].filled) {
    if (GDRX_TRY(post_direct(slot)) == Progress::pending) return Progress::pending;
    counters_->direct.add(1);
    sends_[slot].posted = sends_[slot].bytes.size();
    sends_[slot].queued = false;
    return Progress::done;
  }
  const std::uint64_t consumed = clear_to_send_->consumed;
  if (consumed > next_head_) {
    return tl::unexpected(
        break_with(Error{Errc::protocol, peer_name_ + " claims chunks that were never sent"}));
  }
  if (next_chunk_ - consumed >= chunks_) return Progress::pending;
  Send& send = sends_[slot];
  if (send.direct && GDRX_TRY(post_direct(slot)) == Progress::pending) return Progress::pending;
  const ChunkHead head = head_of(send);
  if (by_threads(send)) {
    stage(head, slot);
  } else {
    if (GDRX_TRY(post_staged()) == Progress::pending) return Progress::pending;
    const auto payload = send.bytes.subspan(static_cast<std::size_t>(send.posted), head.bytes);
    if (GDRX_TRY(post_head(head, payload, slot)) == Progress::pending) return Progress::pending;
    ++next_chunk_;
    next_head_ = next_chunk_;
  }
  counters_->chunks.add(1);
  if (send.direct) counters_->direct.add(1);
  send.posted = send.direct ? send.bytes.size() : send.posted + head.bytes;
  send.queued = send.posted < send.bytes.size();
  return Progress::done;
}

ChunkHead Sender::head_of(const Send& send) const noexcept {
  ChunkHead head;
  head.sequence = next_chunk_ + 1;
  head.group = send.group;
  head.item = send.item;
  head.offset = send.posted;
  head.total = send.bytes.size();
  head.direct = send.direct ? 1 : 0;
  const Bytes most = send.direct ? 0 : most_in_chunk_;
  head.bytes = static_cast<std::uint32_t>(std::min<Bytes>(send.bytes.size() - send.posted, most));
  return head;
}

Result<Progress> Sender::post_head(const ChunkHead& head, std::span<const std::byte> payload,
                                   std::uint16_t slot) {
  Send& send = sends_[slot];
  std::array<std::byte, kChunkHead> padded{};
  std::memcpy(padded.data(), &head, sizeof head);
  WriteOp op;
  op.header = padded;
  op.payload = payload;
  op.local = send.local ? send.local->region() : nullptr;
  op.remote = receive_ring_;
  op.offset = place_of(head.sequence - 1);
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
  }
  return *posted;
}

// Bounded, as close() is.
void Sender::let_go(const Memory& memory) noexcept {
  finish_staged();
  const auto reads = [&](const Send& send) {
    return send.active && send.unwritten > 0 && memory.holds(send.bytes.data(), send.bytes.size());
  };
  const auto done = [&] { return std::none_of(sends_.begin(), sends_.end(), reads) || !healthy(); };
  if (!done()) device_context().drain(done);
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
      chunks_ - (next_chunk_ - clear_to_send_->consumed), chunks_);
}

Result<Answer> Sender::test(RequestId id) {
  if (id.slot >= kMaxSends || !sends_[id.slot].active || sends_[id.slot].life != id.life) {
    return fail(Errc::invalid_argument, "test() of a request that is done already");
  }
  Send& send = sends_[id.slot];
  const auto open = [&send] { return send.queued || send.staged > 0 || send.unwritten > 0; };
  if (open()) {
    GDRX_TRY(device_context().poll());
    GDRX_TRY(pump());
  }
  if (open()) {
    GDRX_TRY(healthy());
    GDRX_TRY(look_at_peer());
    return Answer{};
  }
  send.active = false;
  send.local.reset();
  ++send.life;
  ended(send.begun, send.bytes.size(), send.bytes.size() <= most_in_chunk_);
  free_.push_back(id.slot);
  return Answer{Progress::done, 1, &send.size};
}

}  // namespace gdrx::net
