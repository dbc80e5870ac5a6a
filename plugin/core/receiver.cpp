// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/receiver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#include "plugin/core/copy.hpp"

namespace gdrx::net {
namespace {

// 2 MiB for each connection, touched as it is used. A chunk is large enough that its message costs
// little beside its copy.
constexpr Bytes kChunkBytes = 128 * 1024;
constexpr std::uint32_t kChunks = 16;
constexpr std::uint64_t kReturnAt = kChunks / 4;

}  // namespace

Result<std::unique_ptr<Receiver>> Receiver::create(std::shared_ptr<Lane> lane, const Hello& hello,
                                                   std::span<const std::byte> address,
                                                   std::span<const std::byte> board_key,
                                                   std::string peer_name) {
  auto receiver = std::unique_ptr<Receiver>(new Receiver(std::move(lane)));
  receiver->peer_name_ = std::move(peer_name);
  GDRX_TRY(receiver->open(hello, address, board_key));
  return receiver;
}

Result<void> Receiver::open(const Hello& hello, std::span<const std::byte> address,
                            std::span<const std::byte> board_key) {
  inbox_region_ = GDRX_TRY(lane().device().allocate_memory(kChunks * kChunkBytes));
  Endpoint* endpoint = GDRX_TRY(lane().endpoint_to(hello.lane, address));
  board_ = GDRX_TRY(endpoint->import_region(board_key));
  endpoint_ = endpoint;
  if (lane().config().net_gpu) {
    gpu_name_ = GDRX_TRY(random_value<gpu::SocketName>());
    giver_ = GDRX_TRY(gpu::Giver::listen(gpu_name_));
  }
  GDRX_TRY(enter());
  count_as(stats::Way::receive);
  return {};
}

Receiver::~Receiver() {
  if (endpoint_ != nullptr) endpoint_->release_region(board_);
  if (inbox_region_) lane().forget(*inbox_region_);
}

Welcome Receiver::welcome() const {
  Welcome welcome;
  welcome.lane = lane().id();
  welcome.comm = index();
  welcome.chunks = kChunks;
  welcome.chunk_bytes = kChunkBytes;
  welcome.gpu = gpu_name_;
  return welcome;
}

Result<std::uint32_t> Receiver::hand_over(std::span<std::byte> memory) {
  if (!giver_) return fail(Errc::internal, "GPU memory is not taken here");
  return giver_->give(memory);
}

Result<std::uint32_t> Receiver::hand_over(const MemoryRegion& region) {
  const Given given{kMagic, given_ + 1, region.bytes().size()};
  Blob payload;
  append_blob(payload, std::as_bytes(std::span(&given, 1)));
  append_blob(payload, lane().export_key(region));
  if (!tell(payload)) return 0U;  // through the inbox, then
  return ++given_;
}

Result<Progress> Receiver::wire_up() {
  static constexpr std::uint64_t kReady = 1;
  GDRX_TRY(healthy());
  if (!answered_) {
    WriteOp op;
    op.header = std::as_bytes(std::span(&kReady, 1));
    op.remote = board_;
    op.offset = offsetof(Board, ready);
    op.cookie = cookie_of(index(), kNoSlot);
    answered_ = GDRX_TRY(endpoint_->post(op)) == Progress::done;
  }
  GDRX_TRY(lane().poll());
  return answered_ && greeted_ ? Progress::done : Progress::pending;
}

Result<void*> Receiver::irecv(std::span<const Target> targets) {
  GDRX_TRY(healthy());
  const std::uint64_t place = next_group_ % kBoardGroups;
  Receive& receive = receives_[place];
  if (receive.active) {
    counters_->waits.add(1);
    return nullptr;
  }
  Group& group = groups_[place];
  group = {};
  group.sequence = next_group_;
  group.count = static_cast<std::uint32_t>(targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Target& target = targets[i];
    group.items[i] = {target.bytes.size(), 0, target.tag, 0};
    if (target.memory == nullptr || target.memory->handed_over == 0 || target.bytes.empty()) {
      continue;
    }
    if (!target.memory->holds(target.bytes.data(), target.bytes.size())) {
      return fail(Errc::invalid_argument, "irecv() beyond the memory that was registered");
    }
    group.items[i].memory = target.memory->handed_over;
    group.items[i].offset =
        static_cast<std::uint64_t>(target.bytes.data() - target.memory->bytes.data());
  }
  const auto bytes = std::as_bytes(std::span(&group, 1));
  WriteOp op;
  op.payload = bytes.first(offsetof(Group, items) + targets.size() * sizeof(Item));
  op.remote = board_;
  op.offset = offsetof(Board, groups) + place * sizeof(Group);
  op.cookie = cookie_of(index(), kNoSlot);
  auto posted = endpoint_->post(op);
  if (!posted) return tl::unexpected(break_with(std::move(posted).error()));
  if (*posted == Progress::pending) {
    GDRX_TRY(lane().poll());
    return nullptr;
  }
  receive.active = true;
  receive.group = next_group_++;
  receive.count = group.count;
  receive.open = group.count;
  begun(&receive.begun);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    receive.targets[i] = targets[i].bytes;
    receive.got[i] = 0;
    receive.done[i] = false;
    receive.handed_over[i] = group.items[i].memory != 0;
    receive.gpu[i] = receive.handed_over[i] && targets[i].memory->gpu;
    receive.sizes[i] = 0;
  }
  return encode({index(), static_cast<std::uint16_t>(place), receive.life});
}

// Chunks may become visible out of order where small messages overtake large ones; they are taken
// in order all the same.
void Receiver::on_immediate() {
  if (!greeted_) {
    greeted_ = true;
    return;
  }
  ++arrived_;
  if (!healthy()) return;
  while (taken_ < arrived_) {
    const std::byte* place = inbox_region_->bytes().data() + taken_ % kChunks * kChunkBytes;
    ChunkHead head;
    std::memcpy(&head, place, sizeof head);
    if (head.sequence != taken_ + 1) return;
    if (auto taken = take(head, place + kChunkHead); !taken) {
      break_with(std::move(taken).error());
      return;
    }
    ++taken_;
    counters_->chunks.add(1);
    moved();
    if (taken_ - returned_ >= kReturnAt) {
      if (auto given = give_room_back(); !given) break_with(std::move(given).error());
    }
  }
}

// Nothing in the head is trusted.
Result<void> Receiver::take(const ChunkHead& head, const std::byte* bytes) {
  Receive& receive = receives_[head.group % kBoardGroups];
  if (!receive.active || receive.group != head.group || head.item >= receive.count ||
      receive.done[head.item]) {
    return fail(Errc::protocol, peer_name_ + " sent a chunk for no receive of ours");
  }
  const std::span<std::byte> target = receive.targets[head.item];
  Bytes& got = receive.got[head.item];
  if (head.direct != 0 && receive.handed_over[head.item] && head.bytes == 0 && head.offset == 0 &&
      got == 0 && head.total <= target.size()) {
    got = head.total;  // it is in its place
    counters_->direct.add(1);
  } else if (head.total > target.size() || head.offset != got || head.direct != 0 ||
             (receive.gpu[head.item] && head.bytes > 0) || head.bytes > kChunkBytes - kChunkHead ||
             head.bytes > head.total - head.offset) {
    return fail(Errc::protocol,
                fmt::format("{} sent {} bytes at {} of {} for a receive of {}", peer_name_,
                            head.bytes, head.offset, head.total, target.size()));
  }
  if (head.bytes > 0) copy_in_order(target.data() + head.offset, bytes, head.bytes);
  got += head.bytes;
  if (got < head.total) return {};
  receive.done[head.item] = true;
  receive.sizes[head.item] =
      static_cast<int>(std::min<Bytes>(got, Bytes{std::numeric_limits<int>::max()}));
  --receive.open;
  return {};
}

Result<void> Receiver::give_room_back() {
  WriteOp op;
  op.header = std::as_bytes(std::span(&taken_, 1));  // copied by post()
  op.remote = board_;
  op.offset = offsetof(Board, consumed);
  op.cookie = cookie_of(index(), kNoSlot);
  if (GDRX_TRY(endpoint_->post(op)) == Progress::done) returned_ = taken_;
  return {};
}

std::string Receiver::state() const {
  const Receive* oldest = nullptr;
  for (const Receive& receive : receives_) {
    if (receive.active && (oldest == nullptr || receive.group < oldest->group)) oldest = &receive;
  }
  if (oldest == nullptr) return "nothing is open";
  std::string text = fmt::format("receive {}:", oldest->group);
  for (std::uint32_t i = 0; i < oldest->count; ++i) {
    text += fmt::format("{} tag {} has {} of at most {} bytes{}", i == 0 ? "" : ",",
                        groups_[oldest->group % kBoardGroups].items[i].tag, oldest->got[i],
                        oldest->targets[i].size(), oldest->done[i] ? " (done)" : "");
  }
  return text;
}

Result<Answer> Receiver::test(RequestId id) {
  if (id.slot >= kBoardGroups || !receives_[id.slot].active || receives_[id.slot].life != id.life) {
    return fail(Errc::invalid_argument, "test() of a request that is done already");
  }
  Receive& receive = receives_[id.slot];
  if (receive.open > 0) {
    GDRX_TRY(lane().poll());
    if (taken_ - returned_ >= kReturnAt) GDRX_TRY(give_room_back());
  }
  if (receive.open > 0) {
    GDRX_TRY(healthy());
    GDRX_TRY(look_at_peer());
    return Answer{};
  }
  receive.active = false;
  ++receive.life;
  Bytes bytes = 0;
  for (std::uint32_t i = 0; i < receive.count; ++i) bytes += receive.got[i];
  ended(receive.begun, bytes, bytes <= kChunkBytes - kChunkHead);
  return Answer{Progress::done, static_cast<int>(receive.count), receive.sizes.data()};
}

}  // namespace gdrx::net
