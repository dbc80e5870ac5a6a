// SPDX-License-Identifier: Apache-2.0
// Messages from one rank to another of its host, in memory that both map: a ring of cells, each
// with what its slice says of itself and few bytes, and behind them room for those of longer
// slices.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx::exec {

inline constexpr std::size_t kRingCells = 32;  // slices that the receiver has not taken
/// Room of a ring: as much as a core's own cache, so that what is written over has left it. Lines
/// that both cores have just had are twice as slow to write. Of many ranks less, as all rings of a
/// host are written to their end sooner or later.
inline constexpr std::size_t kMostRoom = 1024 * 1024;
inline constexpr std::size_t kLeastRoom = 16 * 1024;
inline constexpr std::size_t kRoomOfAll = 64 * 1024 * 1024;
/// A longer message is cut, so that writing one slice and reading another overlap. Or it is lent:
/// its receiver reads it in the sender's memory, by the kernel.
inline constexpr std::size_t kRingSlice = 8 * 1024;
inline constexpr std::size_t kRingCut = 32 * 1024;
/// Each of them has rings with all others.
inline constexpr int kMostRanksWithRings = 128;

/// What a slice says of its message.
struct SliceHead {
  std::uint64_t count = 0;     // elements of the message
  std::uint32_t instance = 0;  // which slice of it
  DataType type{};
  std::uint8_t lent = 0;  // not 0: the whole message is where data says, as an address
  std::array<std::uint8_t, 2> reserved{};
  friend bool operator==(const SliceHead&, const SliceHead&) = default;
};

/// A pair of cache lines that processors fetch together; the first has all of a slice of 40 bytes.
struct alignas(128) RingCell {
  static constexpr std::size_t kData = 104;
  /// Slices that were sent, this one included. Its release publishes what is below, and its room.
  std::atomic<std::uint64_t> number;
  SliceHead head;
  std::byte data[kData];
};
static_assert(sizeof(RingCell) == 128);

/// Zero at first, with its room behind it. The receiver writes the first two, the sender the rest.
struct PairRing {
  alignas(128) std::atomic<std::uint64_t> taken;  // slices. Its release gives their room back
  std::atomic<std::uint64_t> refused;  // the newest that was lent and cannot be read; before taken
  /// What is lent belongs to its owner again, for the communicator has failed.
  alignas(128) std::atomic<std::uint64_t> withdrawn;
  RingCell cells[kRingCells];
  std::byte* room() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// The rings of all ranks of a host: a view of memory that each maps.
class PairRings {
 public:
  PairRings(std::span<std::byte> memory, int ranks, int self) noexcept
      : memory_(memory), ranks_(ranks), self_(self) {}
  /// 0: so many have none.
  static std::size_t bytes(int ranks) noexcept {
    if (ranks > kMostRanksWithRings) return 0;
    return pairs_of(ranks) * (sizeof(PairRing) + room_of(ranks));
  }
  static std::size_t room_of(int ranks) noexcept {
    const std::size_t room = std::bit_floor(kRoomOfAll / pairs_of(ranks));
    return std::clamp(room, kLeastRoom, kMostRoom);
  }
  std::size_t room() const noexcept { return room_of(ranks_); }
  /// Of a message that is cut, at most so many bytes a slice.
  std::size_t cut() const noexcept { return std::min(kRingCut, room() / 2); }
  PairRing& to(int peer) const noexcept { return at(self_, peer); }
  PairRing& from(int peer) const noexcept { return at(peer, self_); }

 private:
  static std::size_t pairs_of(int ranks) noexcept {
    return static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks);
  }
  PairRing& at(int from, int to) const noexcept {
    const auto number = static_cast<std::size_t>(from * ranks_ + to);
    return *reinterpret_cast<PairRing*>(memory_.data() + number * (sizeof(PairRing) + room()));
  }
  std::span<std::byte> memory_;
  int ranks_;
  int self_;
};

/// Where slices begin in the room. Both sides count alike, so that neither believes the other.
class RoomCount {
 public:
  explicit RoomCount(std::uint64_t room) noexcept : room_(room) {}
  /// Of a slice of so many bytes: in one piece.
  std::uint64_t begin(std::uint64_t bytes) const noexcept {
    const std::uint64_t at = end_ % room_;
    return at + bytes <= room_ ? end_ : end_ + room_ - at;
  }
  static std::uint64_t end(std::uint64_t begin, std::uint64_t bytes) noexcept {
    return begin + (bytes + kGrain - 1) / kGrain * kGrain;
  }
  void set_end(std::uint64_t end) noexcept { end_ = end; }
  std::uint64_t end() const noexcept { return end_; }
  /// Commits what a slice that ends there is the first to need, and some more.
  void reach(std::uint64_t end, std::byte* room) noexcept {
    if (end > committed_ && committed_ < room_) commit_until(end, room);
  }
  std::uint64_t size() const noexcept { return room_; }
  std::uint64_t place(std::uint64_t begin) const noexcept { return begin % room_; }

 private:
  static constexpr std::uint64_t kGrain = 64;
  void commit_until(std::uint64_t end, std::byte* room) noexcept;
  std::uint64_t room_;
  std::uint64_t committed_ = 0;
  std::uint64_t end_ = 0;
};

/// Used by the thread that drives the communicator, as the next.
class RingSender {
 public:
  /// `room`: of the ring, as its receiver has it.
  RingSender(PairRing& ring, Rank peer, std::size_t room) noexcept
      : ring_(&ring), peer_(peer), room_(room) {}
  /// At most half of the room, which is copied. Errc::protocol: the peer has taken what it was
  /// never given.
  Result<Progress> send(const SliceHead& head, std::span<const std::byte> bytes);
  /// The message stays as it is until the receiver has it. Nothing is sent meanwhile.
  Result<Progress> lend(SliceHead head, const std::byte* message);
  enum class Loan : std::uint8_t { out, over, refused };
  Result<Loan> loan();
  /// From now on the receiver believes nothing of what is lent.
  void withdraw() noexcept {
    ring_->withdrawn.store(1, std::memory_order_relaxed);
    // seq_cst fence: before whatever the program writes there next. A release would do for the
    // fence of still_lent(), but not for stores around the cache, which x86 orders by this alone.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

 private:
  bool has_room(std::uint64_t end) const noexcept {
    const bool empty = taken_ == sent_;
    const std::uint64_t first = empty ? end : begins_[taken_ % kRingCells];
    return sent_ - taken_ < kRingCells && (empty || end - first <= room_.size());
  }
  Result<void> look();

  PairRing* ring_;
  Rank peer_;
  std::uint64_t sent_ = 0;
  std::uint64_t taken_ = 0;  // when it was last looked at
  RoomCount room_;
  std::array<std::uint64_t, kRingCells> begins_{};  // of those that are not taken
};

class RingReceiver {
 public:
  RingReceiver(PairRing& ring, std::size_t room) noexcept : ring_(&ring), room_(room) {}
  /// Of the oldest slice that was not taken; null: none has come. A peer may write it at any time.
  const SliceHead* head() const noexcept {
    const RingCell& cell = ring_->cells[taken_ % kRingCells];
    // acquire: pairs with the release in send(), so that the slice is seen
    return cell.number.load(std::memory_order_acquire) == taken_ + 1 ? &cell.head : nullptr;
  }
  /// Of a head that says so.
  std::uint64_t address() const noexcept;
  /// What was read of the loan, was there.
  bool still_lent() const noexcept;
  void give_back() noexcept;
  void refuse() noexcept;
  /// Copies it, of so many bytes and half of the room at most, and gives its room back.
  void take(std::byte* to, std::uint64_t bytes) noexcept;

 private:
  PairRing* ring_;
  std::uint64_t taken_ = 0;
  RoomCount room_;
};

}  // namespace gdrx::exec
