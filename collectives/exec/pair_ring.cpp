// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/pair_ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "collectives/reduce/copy_few.hpp"
#include "transport/memory/pages.hpp"

namespace gdrx::exec {

// Page by page the first messages would wait longer for their room than for their bytes.
void RoomCount::commit_until(std::uint64_t end, std::byte* room) noexcept {
  constexpr std::uint64_t kStep = 256 * 1024;
  const std::uint64_t until = std::min(room_, std::max(end, committed_ + kStep));
  commit({room + committed_, until - committed_});
  committed_ = until;
}

// Seldom: only when the ring is full by what was last seen, as the receiver writes it all the time.
Result<void> RingSender::look() {
  // acquire: pairs with the release in take(), so that what was taken is written over after that
  const std::uint64_t taken = ring_->taken.load(std::memory_order_acquire);
  if (taken < taken_ || taken > sent_) {
    return fail(Errc::protocol,
                fmt::format("rank {} has taken {} slices of {}", index(peer_), taken, sent_));
  }
  taken_ = taken;
  return {};
}

Result<Progress> RingSender::send(const SliceHead& head, std::span<const std::byte> bytes) {
  const bool in_cell = bytes.size() <= RingCell::kData;
  const std::uint64_t begin = in_cell ? room_.end() : room_.begin(bytes.size());
  const std::uint64_t end = in_cell ? begin : RoomCount::end(begin, bytes.size());
  if (!has_room(end)) {
    GDRX_TRY(look());
    if (!has_room(end)) return Progress::pending;
  }
  RingCell& cell = ring_->cells[sent_ % kRingCells];
  begins_[sent_ % kRingCells] = begin;
  room_.reach(end, ring_->room());
  room_.set_end(end);
  cell.head = head;
  reduce::copy_few(in_cell ? cell.data : ring_->room() + room_.place(begin), bytes.data(),
                   bytes.size());
  ++sent_;
  // release: publishes the slice
  cell.number.store(sent_, std::memory_order_release);
  return Progress::done;
}

Result<Progress> RingSender::lend(SliceHead head, const std::byte* message) {
  head.lent = 1;
  const auto address = std::bit_cast<std::uint64_t>(message);
  return send(head, std::as_bytes(std::span(&address, 1)));
}

Result<RingSender::Loan> RingSender::loan() {
  GDRX_TRY(look());
  if (taken_ != sent_) return Loan::out;
  // It is older than `taken`, of which look() has made sure.
  return ring_->refused.load(std::memory_order_relaxed) == sent_ ? Loan::refused : Loan::over;
}

std::uint64_t RingReceiver::address() const noexcept {
  std::uint64_t address = 0;
  std::memcpy(&address, ring_->cells[taken_ % kRingCells].data, sizeof address);
  return address;
}

bool RingReceiver::still_lent() const noexcept {
  // acquire fence: the kernel has read before this asks
  std::atomic_thread_fence(std::memory_order_acquire);
  return ring_->withdrawn.load(std::memory_order_relaxed) == 0;
}

void RingReceiver::give_back() noexcept {
  ++taken_;
  // release: what was read or copied, was before the sender writes over it
  ring_->taken.store(taken_, std::memory_order_release);
}

void RingReceiver::refuse() noexcept {
  ring_->refused.store(taken_ + 1, std::memory_order_relaxed);
  give_back();
}

void RingReceiver::take(std::byte* to, std::uint64_t bytes) noexcept {
  if (bytes <= RingCell::kData) {
    reduce::copy_few(to, ring_->cells[taken_ % kRingCells].data, bytes);
  } else {
    const std::uint64_t begin = room_.begin(bytes);
    room_.reach(RoomCount::end(begin, bytes), ring_->room());
    reduce::copy_few(to, ring_->room() + room_.place(begin), bytes);
    room_.set_end(RoomCount::end(begin, bytes));
  }
  give_back();
}

}  // namespace gdrx::exec
