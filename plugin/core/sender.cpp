// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/sender.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace gdrx::net {
namespace {

// Below, one message to the inbox and a copy are quicker than a write and a head.
constexpr Bytes kLeastDirect = 16 * 1024;

}  // namespace

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
  copier_.reset();
  // NCCL frees the buffers next: nobody may read them any more.
  lane().settle([this] { return unwritten_ == 0 || !healthy(); });
  if (endpoint_ != nullptr) {
    endpoint_->release_region(inbox_);
    for (const GivenRegion& given : given_) endpoint_->release_region(given.region);
  }
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
  if (welcome.gpu == gpu::SocketName{}) return {};
  if (!lane().config().net_gpu) {
    return fail(Errc::mismatch, peer_name_ + " takes GPU memory: set GDRX_NET_GPU alike");
  }
  taker_ = GDRX_TRY(gpu::Taker::connect(welcome.gpu));
  // Here if this thread has a context: not where NCCL's kernels run already.
  if (!prepare_copies()) copier_.reset();
  return {};
}

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

Result<std::optional<std::uint32_t>> Sender::match(int tag) const {
  const Group& group = board_->groups[group_ % kBoardGroups];
  if (group.sequence != group_) return std::optional<std::uint32_t>();
  if (group.count == 0 || group.count > kMaxGroup) {
    return fail(Errc::protocol, peer_name_ + " posted a group of an impossible size");
  }
  for (std::uint32_t i = 0; i < group.count; ++i) {
    if ((matched_ & 1U << i) == 0 && group.items[i].tag == tag) return std::optional(i);
  }
  return std::optional<std::uint32_t>();
}

void Sender::take_item(std::uint32_t item) noexcept {
  matched_ |= 1U << item;
  if (matched_ != (1U << board_->groups[group_ % kBoardGroups].count) - 1) return;
  matched_ = 0;
  ++group_;
}

Result<void*> Sender::isend(std::span<const std::byte> bytes, int tag, const Memory* memory) {
  GDRX_TRY(healthy());
  if (free_.empty()) return nullptr;
  auto found = GDRX_TRY(match(tag));
  if (!found) {
    GDRX_TRY(lane().poll());
    found = GDRX_TRY(match(tag));
  }
  if (!found) {
    counters_->waits.add(1);
    GDRX_TRY(look_at_peer());
    return nullptr;
  }
  const Item& item = board_->groups[group_ % kBoardGroups].items[*found];
  // More than the receive takes is cut: NCCL may do so with registered user buffers.
  bytes = bytes.first(static_cast<std::size_t>(std::min<Bytes>(bytes.size(), item.size)));
  const auto target = GDRX_TRY(gpu_target(item, bytes.size(), memory));
  if (!target) return nullptr;
  const std::uint16_t slot = free_.back();
  Send& send = sends_[slot];
  if (!target->empty()) GDRX_TRY(copier_->start(slot, target->data(), bytes));
  moved();
  free_.pop_back();
  send.active = true;
  send.queued = true;
  const auto region = region_for(item, bytes.size(), memory);
  send.copied = !target->empty();
  send.direct = send.copied || region;
  send.region = region.value_or(RemoteRegionId{});
  send.offset = item.offset;
  send.written = false;
  send.bytes = bytes;
  send.local = memory == nullptr ? nullptr : memory->region.get();
  send.group = group_;
  send.item = *found;
  send.tag = tag;
  send.posted = 0;
  send.unwritten = 0;
  begun(&send.begun);
  send.size =
      static_cast<int>(std::min<Bytes>(bytes.size(), Bytes{std::numeric_limits<int>::max()}));
  take_item(*found);
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
  if (send.direct && GDRX_TRY(post_direct(slot)) == Progress::pending) return Progress::pending;
  ChunkHead head;
  head.sequence = next_chunk_ + 1;
  head.group = send.group;
  head.item = send.item;
  head.offset = send.posted;
  head.total = send.bytes.size();
  head.direct = send.direct ? 1 : 0;
  const Bytes most = send.direct ? 0 : chunk_bytes_ - kChunkHead;
  head.bytes = static_cast<std::uint32_t>(std::min<Bytes>(send.bytes.size() - send.posted, most));
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
  if (send.direct) counters_->direct.add(1);
  send.posted = send.direct ? send.bytes.size() : send.posted + head.bytes;
  send.queued = send.posted < send.bytes.size();
  return Progress::done;
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
