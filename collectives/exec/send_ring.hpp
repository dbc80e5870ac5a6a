// SPDX-License-Identifier: Apache-2.0
// The sending side of an ReceiveRing: one a peer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "collectives/exec/receive_ring.hpp"
#include "gdrx/transport.hpp"
#include "transport/memory/registration_cache.hpp"

namespace gdrx::exec {

/// Cookie of credit writes, which no execution waits for.
inline constexpr std::uint64_t kNoCookie = ~std::uint64_t{0};

/// Used by the thread that drives the communicator.
class SendRing {
 public:
  SendRing(std::unique_ptr<Endpoint> endpoint, RemoteRegionId receive_ring, const RingShape& shape,
           Rank self)
      : endpoint_(std::move(endpoint)), receive_ring_(receive_ring), shape_(shape), self_(self) {}

  /// Sends one message if the peer has room and the endpoint too. `credit` is ReceiveRing::credit
  /// of the peer and lane. The payload is read until the write with `cookie` is done; `local` is
  /// the region that holds it, or null.
  Result<Progress> send(std::uint32_t lane, std::uint64_t credit, const MessageHeader& header,
                        std::span<const std::byte> payload, const MemoryRegion* local,
                        std::uint64_t cookie) {
    const std::uint64_t sent = sent_[lane];
    if (credit > sent) {
      return fail(Errc::protocol, "rank " + std::to_string(index(endpoint_->peer())) +
                                      " returned credits that it never had");
    }
    if (sent - credit >= kSlots) return Progress::pending;
    const auto slot = static_cast<std::uint32_t>(sent % kSlots);
    WriteOp op;
    op.header = std::as_bytes(std::span(&header, 1));
    op.payload = payload;
    op.local = local;
    op.remote = receive_ring_;
    op.offset = shape_.slot_offset(self_, lane, slot);
    op.has_immediate = true;
    op.immediate = make_immediate(lane, slot);
    op.cookie = cookie;
    const Progress posted = GDRX_TRY(endpoint_->post(op));
    if (posted == Progress::done) ++sent_[lane];
    return posted;
  }

  /// Tells the peer how many of its messages were consumed on the lane.
  Result<Progress> return_credit(std::uint32_t lane, const std::uint64_t& consumed) {
    WriteOp op;
    op.header = std::as_bytes(std::span(&consumed, 1));
    op.remote = receive_ring_;
    op.offset = shape_.credit_offset(self_, lane);
    op.cookie = kNoCookie;
    return endpoint_->post(op);
  }

  std::string describe() const { return endpoint_->describe(); }
  /// For writes into other regions of the peer.
  Endpoint& endpoint() noexcept { return *endpoint_; }

 private:
  std::unique_ptr<Endpoint> endpoint_;
  RemoteRegionId receive_ring_;
  RingShape shape_;
  Rank self_;
  std::array<std::uint64_t, kMaxLanes> sent_{};
};

/// Gives the SendRing of a peer, connecting at its first use.
class Links {
 public:
  virtual ~Links() = default;
  virtual Result<SendRing*> to(Rank peer) = 0;
  virtual const RingShape& shape() const noexcept = 0;
  /// Only where a program talks to others: there is none without a fabric.
  virtual ReceiveRing& receive_ring() noexcept = 0;
  virtual Rank self() const noexcept = 0;
  /// What is registered and covers `memory`, or null.
  virtual RegistrationRef registered(std::span<const std::byte> memory) noexcept = 0;
  /// Memory for one execution at a time, registered where that can be. Reused by the next one.
  struct Scratch {
    std::span<std::byte> bytes;
    RegistrationRef registration;  // or null
  };
  virtual Result<Scratch> scratch(std::size_t bytes) = 0;
};

}  // namespace gdrx::exec
