// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/receiver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
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
constexpr Bytes kMostInChunk = (kChunkBytes - kChunkHead) / kLine * kLine;
// Where NCCL says that many peers send at once (all-to-all), each gets a part of that room: they
// share the wire, and the room would add up to gigabytes, all of it out of the cache.
constexpr std::uint32_t kFewestChunks = 4;
constexpr std::int32_t kManyPeers = 8;

std::uint32_t chunks_for(std::int32_t peers) noexcept {
  return peers > kManyPeers ? kFewestChunks : kChunks;
}

}  // namespace

Result<std::unique_ptr<Receiver>> Receiver::create(std::shared_ptr<DeviceContext> device_context,
                                                   const Hello& hello,
                                                   std::span<const std::byte> address,
                                                   std::span<const std::byte> clear_to_send_key,
                                                   std::string peer_name) {
  auto receiver = std::unique_ptr<Receiver>(new Receiver(std::move(device_context)));
  receiver->peer_name_ = std::move(peer_name);
  GDRX_TRY(receiver->open(hello, address, clear_to_send_key));
  return receiver;
}

Result<void> Receiver::open(const Hello& hello, std::span<const std::byte> address,
                            std::span<const std::byte> clear_to_send_key) {
  chunks_ = chunks_for(device_context().expected_peers());
  copying_ = std::vector<Copying>(chunks_);
  receive_ring_region_ = GDRX_TRY(device_context().device().allocate_memory(chunks_ * kChunkBytes));
  Endpoint* endpoint = GDRX_TRY(device_context().endpoint_to(hello.device_context, address));
  clear_to_send_ = GDRX_TRY(endpoint->import_region(clear_to_send_key));
  reached_over(*endpoint);
  if (device_context().config().net_gpu) {
    gpu_name_ = GDRX_TRY(random_value<gpu::SocketName>());
    exporter_ = GDRX_TRY(gpu::IpcExporter::listen(gpu_name_));
  }
  GDRX_TRY(enter());
  filled_index_ = GDRX_TRY(enter_again());
  // Not over UCX, where small messages may overtake large ones; not where a receive may be in a
  // GPU's memory, into which no processor can put what came eagerly.
  if (device_context().fabric() != "ucx" && (device_context().pointers() & nccl::kPtrCuda) == 0) {
    eager_memory_.resize(kMostEager * kEagerBytes);
  }
  count_as(stats::Way::receive);
  return {};
}

Receiver::~Receiver() {
  finish_copies();  // into buffers that were never registered, too
  if (endpoint_ != nullptr) endpoint_->release_region(clear_to_send_);
  if (receive_ring_region_) device_context().forget(*receive_ring_region_);
}

Welcome Receiver::welcome() const {
  Welcome welcome;
  welcome.device_context = device_context().id();
  welcome.comm = index();
  welcome.chunks = chunks_;
  welcome.chunk_bytes = kChunkBytes;
  welcome.gpu = gpu_name_;
  welcome.filled = filled_index_;
  welcome.eager = eager_memory_.empty() ? 0 : 1;
  return welcome;
}

Result<Progress> Receiver::wire_up() {
  static constexpr std::uint64_t kReady = 1;
  GDRX_TRY(healthy());
  if (!answered_) {
    WriteOp op;
    op.header = std::as_bytes(std::span(&kReady, 1));
    op.remote = clear_to_send_;
    op.offset = offsetof(ClearToSendRing, ready);
    op.cookie = cookie_of(index(), kNoSlot);
    answered_ = GDRX_TRY(endpoint_->post(op)) == Progress::done;
  }
  GDRX_TRY(device_context().poll());
  return answered_ && greeted_ ? Progress::done : Progress::pending;
}

Result<void*> Receiver::irecv(std::span<const Target> targets) {
  GDRX_TRY(healthy());
  const std::uint64_t place = next_group_ % kClearToSendGroups;
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
    group.items[i].memory = target.memory->handed_over | (target.memory->gpu ? kOnlyDirect : 0U);
    group.items[i].offset =
        static_cast<std::uint64_t>(target.bytes.data() - target.memory->origin());
  }
  receive.active = true;
  receive.group = next_group_++;
  receive.count = group.count;
  receive.open = group.count;
  begun(&receive.begun);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    receive.targets[i] = targets[i].bytes;
    receive.got[i] = 0;
    receive.done[i] = receive.come[i] = false;
    receive.copying[i] = 0;
    receive.handed_over[i] = group.items[i].memory != 0;
    receive.gpu[i] = receive.handed_over[i] && targets[i].memory->gpu;
    receive.memory[i] = targets[i].memory;
    receive.gone[i] = false;
    receive.sizes[i] = 0;
  }
  if (auto matched = match_eager(); !matched) {
    return tl::unexpected(break_with(std::move(matched).error()));
  }
  GDRX_TRY(tell_groups());
  return encode({index(), static_cast<std::uint16_t>(place), receive.life});
}

void Receiver::on_immediate(std::uint16_t index) {
  if (!greeted_) {
    greeted_ = true;
    return;
  }
  if (index != filled_index_) {
    ++arrived_;
    if (healthy()) take_chunks();
  } else if (healthy()) {
    if (auto taken = take_filled(); !taken) break_with(std::move(taken).error());
    moved();
  }
}

// Chunks may become visible out of order where small messages overtake large ones; they are taken
// in order all the same.
void Receiver::take_chunks() {
  while (taken_ < arrived_) {
    const std::byte* place = receive_ring_region_->bytes().data() + taken_ % chunks_ * kChunkBytes;
    ChunkHead head;
    std::memcpy(&head, place, sizeof head);
    if (head.sequence != taken_ + 1) return;
    if (taken_ - emptied_ == chunks_) {
      break_with(Error{Errc::protocol, peer_name_ + " sent more chunks than there is room for"});
      return;
    }
    if (auto taken = take(head, place + kChunkHead); !taken) {
      break_with(std::move(taken).error());
      return;
    }
    ++taken_;
    counters_->chunks.add(1);
    moved();
    settle_copies();
    if (emptied_ - returned_ >= chunks_ / 4) {
      if (auto given = give_room_back(); !given) break_with(std::move(given).error());
    }
  }
}

void Receiver::finish_copies() noexcept {
  for (std::uint64_t chunk = emptied_; chunk < taken_; ++chunk) {
    CopyJob& job = copying_[chunk % chunks_].job;
    if (!job.is_done()) device_context().copy_threads()->finish(job);
  }
}

// NCCL's abort: deregisters and frees the buffers of open requests, and closes only then.
void Receiver::let_go(const Memory& memory) noexcept {
  finish_copies();
  for (Receive& receive : receives_) {
    for (std::uint32_t i = 0; receive.active && i < receive.count; ++i) {
      if (receive.memory[i] == &memory) receive.gone[i] = true;
    }
  }
}

void Receiver::settle_copies() noexcept {
  for (; emptied_ < taken_; ++emptied_) {
    Copying& copying = copying_[emptied_ % chunks_];
    if (!copying.job.is_done()) return;
    if (copying.group == 0) continue;
    Receive& receive = receives_[copying.group % kClearToSendGroups];
    copying.group = 0;
    if (--receive.copying[copying.item] == 0 && receive.come[copying.item]) {
      finish(receive, copying.item);
    }
  }
}

Result<void> Receiver::take_filled() {
  const auto item = static_cast<std::uint32_t>(std::countr_one(claimed_));
  Receive& receive = receives_[claiming_ % kClearToSendGroups];
  if (!receive.active || receive.group != claiming_ || !receive.handed_over[item]) {
    return fail(Errc::protocol, peer_name_ + " filled a receive that is none of ours");
  }
  GDRX_TRY(claim(claiming_, item));
  receive.got[item] = receive.targets[item].size();
  counters_->direct.add(1);
  finish(receive, item);
  return {};
}

Result<void> Receiver::claim(std::uint64_t group, std::uint32_t item) {
  GDRX_TRY(mark(group, item));
  return match_eager();  // the group that is open now may be another one
}

Result<void> Receiver::mark(std::uint64_t group, std::uint32_t item) {
  if (group != claiming_ || (claimed_ & 1U << item) != 0) {
    return fail(Errc::protocol, peer_name_ + " sends to receives out of their order");
  }
  claimed_ |= 1U << item;
  if (claimed_ == (1U << receives_[group % kClearToSendGroups].count) - 1) {
    claimed_ = 0;
    ++claiming_;
  }
  return {};
}

void Receiver::finish(Receive& receive, std::uint32_t item) noexcept {
  receive.done[item] = true;
  receive.sizes[item] =
      static_cast<int>(std::min<Bytes>(receive.got[item], Bytes{std::numeric_limits<int>::max()}));
  --receive.open;
}

// Nothing in the head is trusted.
Result<void> Receiver::take(const ChunkHead& head, const std::byte* bytes) {
  if (head.group == 0) return take_eager(head, bytes);
  Receive& receive = receives_[head.group % kClearToSendGroups];
  if (!receive.active || receive.group != head.group || head.item >= receive.count ||
      receive.done[head.item]) {
    return fail(Errc::protocol, peer_name_ + " sent a chunk for no receive of ours");
  }
  if (head.offset == 0) GDRX_TRY(claim(head.group, head.item));
  const std::span<std::byte> target = receive.targets[head.item];
  Bytes& got = receive.got[head.item];
  if (head.direct != 0 && receive.handed_over[head.item] && head.bytes == 0 && head.offset == 0 &&
      got == 0 && head.total <= target.size()) {
    got = head.total;  // it is in its place
    counters_->direct.add(1);
  } else if (head.total > target.size() || head.offset != got || head.direct != 0 ||
             (receive.gpu[head.item] && head.bytes > 0) || head.bytes > kMostInChunk ||
             head.bytes > head.total - head.offset || head.offset % kLine != 0) {
    return fail(Errc::protocol,
                fmt::format("{} sent {} bytes at {} of {} for a receive of {}", peer_name_,
                            head.bytes, head.offset, head.total, target.size()));
  }
  const bool wanted = head.bytes > 0 && !receive.gone[head.item];
  if (wanted && device_context().copy_threads() != nullptr && head.total >= kLeastByThreads) {
    Copying& copying = copying_[taken_ % chunks_];
    copying.group = head.group;
    copying.item = head.item;
    copying.job.to = target.data() + head.offset;
    copying.job.from = bytes;
    copying.job.bytes = head.bytes;
    ++receive.copying[head.item];
    device_context().copy_threads()->start(copying.job);
    stats::page().thread_chunks.add(1);
  } else if (wanted) {
    copy_in_order(target.data() + head.offset, bytes, head.bytes);
  }
  got += head.bytes;
  receive.come[head.item] = got == head.total;
  if (receive.come[head.item] && receive.copying[head.item] == 0) finish(receive, head.item);
  return {};
}

Result<void> Receiver::give_room_back() {
  WriteOp op;
  op.header = std::as_bytes(std::span(&emptied_, 1));  // copied by post()
  op.remote = clear_to_send_;
  op.offset = offsetof(ClearToSendRing, consumed);
  op.cookie = cookie_of(index(), kNoSlot);
  if (GDRX_TRY(endpoint_->post(op)) == Progress::done) returned_ = emptied_;
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
                        groups_[oldest->group % kClearToSendGroups].items[i].tag, oldest->got[i],
                        oldest->targets[i].size(), oldest->done[i] ? " (done)" : "");
  }
  return text;
}

Result<Answer> Receiver::test(RequestId id) {
  if (id.slot >= kClearToSendGroups) return test_flush(id);
  if (!receives_[id.slot].active || receives_[id.slot].life != id.life) {
    return fail(Errc::invalid_argument, "test() of a request that is done already");
  }
  Receive& receive = receives_[id.slot];
  if (receive.open > 0) {
    GDRX_TRY(device_context().poll());
    GDRX_TRY(tell_groups());
    if (emptied_ < taken_) device_context().copy_threads()->help();
    settle_copies();
    if (emptied_ - returned_ >= chunks_ / 4) GDRX_TRY(give_room_back());
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
  ended(receive.begun, bytes, bytes <= kMostInChunk);
  return Answer{Progress::done, static_cast<int>(receive.count), receive.sizes.data()};
}

}  // namespace gdrx::net
