// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/outgoing.hpp"

#include <array>

namespace gdrx::tcp {
namespace {

constexpr std::size_t kParts = 64;  // of one call: 32 writes
// One poll sends at most so much to a peer that takes everything at once.
constexpr std::size_t kMostSentAtOnce = 4U << 20;

}  // namespace

void Outgoing::push(Write* write) noexcept {
  queued_ += write->size();
  write->end = queued_;
  if (last_ != nullptr) last_->next = write;
  last_ = write;
  if (first_ == nullptr) first_ = write;
  if (unsent_ == nullptr) unsent_ = write;
}

std::size_t Outgoing::gather(std::span<iovec> parts) const noexcept {
  std::size_t count = 0;
  std::size_t skip = taken_;
  for (const Write* write = unsent_; write != nullptr && count + 2 <= parts.size();
       write = write->next) {
    if (skip < write->front_length) {
      parts[count++] = {const_cast<std::byte*>(write->front.data()) + skip,
                        write->front_length - skip};
      skip = 0;
    } else {
      skip -= write->front_length;
    }
    if (write->payload.size() > skip) {
      parts[count++] = {const_cast<std::byte*>(write->payload.data()) + skip,
                        write->payload.size() - skip};
    }
    skip = 0;
  }
  return count;
}

void Outgoing::advance(std::size_t bytes) noexcept {
  while (unsent_ != nullptr && bytes >= unsent_->size() - taken_) {
    bytes -= unsent_->size() - taken_;
    taken_ = 0;
    unsent_ = unsent_->next;
  }
  taken_ += bytes;
}

Result<bool> Outgoing::pump(Stream& stream, Rank peer, Ready& ready, Writes& writes) {
  std::array<iovec, kParts> parts;
  std::size_t total = 0;
  while (unsent_ != nullptr || stream.has_unsent()) {
    const std::size_t count = gather(parts);
    const std::size_t sent = GDRX_TRY(stream.send(std::span(parts).first(count)));
    advance(sent);
    total += sent;
    if (sent == 0 || total >= kMostSentAtOnce) break;
  }
  bool any = total > 0;
  while (first_ != nullptr && first_->end <= stream.settled()) {
    Write* done = first_;
    first_ = done->next;
    if (first_ == nullptr) last_ = nullptr;
    ready.push({CompletionKind::write_done, peer, 0, done->cookie});
    writes.give_back(done);
    any = true;
  }
  return any;
}

void Outgoing::drop(Writes& writes) noexcept {
  while (first_ != nullptr) {
    Write* write = first_;
    first_ = write->next;
    writes.give_back(write);
  }
  last_ = unsent_ = nullptr;
  taken_ = 0;
}

}  // namespace gdrx::tcp
