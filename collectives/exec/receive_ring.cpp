// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/receive_ring.hpp"

#include <fmt/format.h>

namespace gdrx::exec {
namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::uint64_t RingShape::credits_bytes() const noexcept {
  return round_up(std::uint64_t{ranks} * lanes * sizeof(std::uint64_t), kPage);
}

std::uint64_t RingShape::stride() const noexcept {
  // The header ends at a page boundary and the payload starts there: kernel copies (CMA) and vector
  // loads like it.
  return round_up(slice, kPage) + kPage;
}

std::uint64_t RingShape::bytes() const noexcept {
  return credits_bytes() + std::uint64_t{ranks} * lanes * kSlots * stride();
}

Bytes RingShape::credit_offset(Rank peer, std::uint32_t lane) const noexcept {
  return (static_cast<std::uint64_t>(index(peer)) * lanes + lane) * sizeof(std::uint64_t);
}

Bytes RingShape::slot_offset(Rank peer, std::uint32_t lane, std::uint32_t slot) const noexcept {
  const std::uint64_t number =
      (static_cast<std::uint64_t>(index(peer)) * lanes + lane) * kSlots + slot;
  return credits_bytes() + number * stride() + kPage - sizeof(MessageHeader);
}

Result<std::unique_ptr<ReceiveRing>> ReceiveRing::create(const RingShape& shape, Device& device) {
  auto region = GDRX_TRY(device.allocate_memory(shape.bytes()));
  return std::unique_ptr<ReceiveRing>(new ReceiveRing(shape, std::move(region)));
}

Result<void> ReceiveRing::arrived(Rank peer, std::uint32_t immediate) {
  const std::uint32_t lane_number = immediate >> 8;
  const std::uint32_t slot = immediate & 0xff;
  if (index(peer) < 0 || static_cast<std::uint32_t>(index(peer)) >= shape_.ranks) {
    return fail(Errc::protocol, fmt::format("a message of a rank {} that is none", index(peer)));
  }
  if (lane_number >= shape_.lanes || slot >= kSlots) {
    return fail(Errc::protocol, fmt::format("rank {} announced a message in lane {} slot {}",
                                            index(peer), lane_number, slot));
  }
  Lane& target = lane(peer, lane_number);
  if ((target.full & 1u << slot) != 0) {
    return fail(Errc::protocol, fmt::format("rank {} overwrote lane {} slot {} without a credit",
                                            index(peer), lane_number, slot));
  }
  target.full |= 1u << slot;
  return {};
}

const MessageHeader* ReceiveRing::head(Rank peer, std::uint32_t lane_number) const noexcept {
  const Lane& source = lane(peer, lane_number);
  const auto slot = static_cast<std::uint32_t>(source.consumed % kSlots);
  if ((source.full & 1u << slot) == 0) return nullptr;
  return reinterpret_cast<const MessageHeader*>(base_ +
                                                shape_.slot_offset(peer, lane_number, slot));
}

std::uint64_t ReceiveRing::consume(Rank peer, std::uint32_t lane_number) noexcept {
  Lane& source = lane(peer, lane_number);
  source.full &= ~(1u << source.consumed % kSlots);
  return ++source.consumed;
}

std::uint64_t ReceiveRing::credit(Rank peer, std::uint32_t lane_number) const noexcept {
  return credit_in(
      *reinterpret_cast<std::uint64_t*>(base_ + shape_.credit_offset(peer, lane_number)));
}

const MessageHeader* ReceiveRing::find_stray(const CallSignature& mine, Rank& peer) const noexcept {
  for (std::uint32_t p = 0; p < shape_.ranks; ++p) {
    for (std::uint32_t l = 0; l < shape_.first_flow_lane(); ++l) {
      peer = static_cast<Rank>(p);
      const MessageHeader* found = head(peer, l);
      if (found != nullptr && found->signature.sequence == mine.sequence &&
          !(found->signature == mine)) {
        return found;
      }
    }
  }
  return nullptr;
}

}  // namespace gdrx::exec
