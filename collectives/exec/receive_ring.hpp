// SPDX-License-Identifier: Apache-2.0
// Where peers' messages land, and the credits that keep them from landing on each other.
//
// One registered region a rank: first a table of credits [peer][lane], written by the peers that
// receive from us; then slots [peer][lane][slot], each a header and a payload, written by the peers
// that send to us. Memory is reserved for every peer and touched only for those that send.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/exec/call_signature.hpp"
#include "gdrx/result.hpp"
#include "gdrx/transport.hpp"

namespace gdrx::exec {

inline constexpr std::uint32_t kFlowLanes = 4;  // of them, for point-to-point messages
inline constexpr std::uint32_t kMaxLanes = 16 + kFlowLanes;
inline constexpr std::uint32_t kSlots = 4;  // messages in flight between two ranks on a lane

/// The same on every rank of a communicator.
struct RingShape {
  std::uint32_t ranks = 1;
  std::uint32_t lanes = 8 + kFlowLanes;  // as many, besides those, as any plan has channels
  std::uint32_t window = 8;              // slices of a plan in flight at once, of all its channels
  std::uint64_t slice = 128 * 1024;      // largest payload, bytes

  /// Point-to-point messages have this lane and those behind it, plans those before.
  std::uint32_t first_flow_lane() const noexcept { return lanes - kFlowLanes; }
  std::uint64_t credits_bytes() const noexcept;
  std::uint64_t stride() const noexcept;  // of a slot
  std::uint64_t bytes() const noexcept;
  Bytes credit_offset(Rank peer, std::uint32_t lane) const noexcept;
  /// Of the slot's header; the payload follows it and is aligned to a page.
  Bytes slot_offset(Rank peer, std::uint32_t lane, std::uint32_t slot) const noexcept;
  friend bool operator==(const RingShape&, const RingShape&) = default;
};

constexpr std::uint32_t make_immediate(std::uint32_t lane, std::uint32_t slot) noexcept {
  return lane << 8 | slot;
}

/// A NIC, or a process that maps the word, may write it at any moment.
inline std::uint64_t credit_in(std::uint64_t& word) noexcept {
  // acquire: what the peer has consumed, it read before this rank writes over it
  return std::atomic_ref(word).load(std::memory_order_acquire);
}

/// Used by the thread that drives the communicator.
class ReceiveRing {
 public:
  static Result<std::unique_ptr<ReceiveRing>> create(const RingShape& shape, Device& device);

  const RingShape& shape() const noexcept { return shape_; }
  Blob key() const { return region_->export_key(); }

  /// A peer's message has landed. Errc::protocol if its immediate is impossible.
  Result<void> arrived(Rank peer, std::uint32_t immediate);
  /// The oldest unconsumed message of (peer, lane), or null.
  const MessageHeader* head(Rank peer, std::uint32_t lane) const noexcept;
  static const std::byte* payload(const MessageHeader* header) noexcept {
    return reinterpret_cast<const std::byte*>(header + 1);
  }
  /// Frees the head. Returns how many messages of (peer, lane) were consumed so far.
  std::uint64_t consume(Rank peer, std::uint32_t lane) noexcept;
  /// How many of our messages the peer says it has consumed on the lane.
  std::uint64_t credit(Rank peer, std::uint32_t lane) const noexcept;
  /// Any unconsumed message of a plan of `sequence` (for finding mismatched calls), or null.
  const MessageHeader* find_stray(const CallSignature& mine, Rank& peer) const noexcept;

 private:
  struct Lane {
    std::uint64_t consumed = 0;
    std::uint32_t full = 0;  // bit a slot
  };
  ReceiveRing(const RingShape& shape, std::unique_ptr<MemoryRegion> region)
      : shape_(shape), region_(std::move(region)), base_(region_->bytes().data()) {
    lanes_.resize(std::size_t{shape.ranks} * shape.lanes);
  }
  Lane& lane(Rank peer, std::uint32_t lane) noexcept {
    return lanes_[static_cast<std::size_t>(index(peer)) * shape_.lanes + lane];
  }
  const Lane& lane(Rank peer, std::uint32_t lane) const noexcept {
    return lanes_[static_cast<std::size_t>(index(peer)) * shape_.lanes + lane];
  }

  RingShape shape_;
  std::unique_ptr<MemoryRegion> region_;
  std::byte* base_;
  std::vector<Lane> lanes_;
};

}  // namespace gdrx::exec
