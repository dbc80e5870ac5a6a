// SPDX-License-Identifier: Apache-2.0
// The messages to one peer that are not delivered for certain: a ring of the window's length. Each
// is one send (small), one write with immediate (whole), or an envelope and stripes.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "transport/verbs/core.hpp"
#include "transport/verbs/port_pair.hpp"
#include "transport/verbs/striper.hpp"

namespace gdrx::verbs {

class VerbsRegion;

struct Remote {
  RegionKey key;
};

class Outgoing {
 public:
  struct Place {
    std::byte* memory = nullptr;       // kWindow * kReceiveSlot, registered
    std::vector<std::uint32_t> lkeys;  // by rail of ours
  };
  Outgoing(Core& core, Rank peer, std::vector<std::unique_ptr<PortPair>>& pairs)
      : core_(core), peer_(peer), pairs_(pairs) {}
  void set_place(Place place) { place_ = std::move(place); }

  Result<Progress> post(const WriteOp& op, const Remote& remote);
  void acknowledged(const Fragment& fragment) noexcept;
  void lost(const Fragment& fragment) noexcept;
  void peer_delivered(std::uint64_t messages) noexcept;
  /// Sends again what a failed port pair left.
  void resend() noexcept;
  std::uint64_t unfinished() const noexcept { return unfinished_; }
  std::string state() const;
  /// All messages before are acknowledged.
  std::uint64_t acknowledged() const noexcept { return oldest_; }
  /// The peer waits to hear that all messages before this one are.
  std::uint64_t to_confirm() const noexcept { return to_confirm_; }
  bool has_lost() const noexcept { return lost_ != 0; }
  /// Of one part, after which it is not the rails that are bad.
  static constexpr std::uint8_t kMostResends = 16;
  bool worn_out() const noexcept { return worn_out_; }
  /// The peer is lost: nothing is owed to it any more, and nothing is held for it.
  void abandon() noexcept;

 private:
  enum class Form : std::uint8_t { eager, whole, striped };
  struct Message {
    Form form{};
    bool has_immediate = false;
    bool staged = false;
    std::uint8_t header_bytes = 0;
    std::uint16_t unacknowledged = 0;       // bit a fragment; 0: free
    std::uint16_t todo = 0;                 // fragments that a port pair lost
    std::array<std::uint8_t, 16> losses{};  // of each fragment
    std::uint32_t immediate = 0;
    std::uint64_t cookie = 0;
    Bytes offset = 0;
    std::span<const std::byte> payload;
    const VerbsRegion* local = nullptr;  // within post() only; null: staged or eager
    // Not the region: it may end while a dead peer's message waits for its acknowledgement.
    std::array<std::uint32_t, kMaxRails> lkeys{};
    RegionKey key;
    std::uint16_t far = 0;  // of the payload's region, as RegionKey::far
    Stripes stripes;
  };
  Message& message(std::uint64_t sequence) noexcept { return ring_[sequence % kWindow]; }
  std::byte* slot(std::uint64_t sequence) const noexcept {
    return place_.memory + sequence % kWindow * kReceiveSlot;
  }
  QpChannel* choose(PortPair** pair, Bytes bytes = 0) noexcept;
  QpChannel* channel_of(PortPair& pair, Bytes bytes = 0) noexcept;
  void prepare(const WriteOp& op, const Remote& remote, Message& fresh);
  Result<Progress> hold_payload(const WriteOp& op, Message& fresh);
  Result<Progress> cut(Message& fresh);
  bool far_away(const Message& of, const PortPair& pair) const noexcept;
  static Bytes bytes_of(const Message& of, unsigned fragment) noexcept;
  void write_head(const Message& fresh, std::span<const std::byte> header) noexcept;
  void post_fragment(Message& of, unsigned fragment, PortPair& pair, QpChannel& channel,
                     bool soon) noexcept;
  int post_head(const Message& of, Fragment fragment, PortPair& pair, QpChannel& channel,
                bool soon) noexcept;
  int post_write(const Message& of, const Fragment& fragment, PortPair& pair, QpChannel& channel,
                 bool soon) noexcept;
  std::uint32_t payload_lkey(const Message& of, const PortPair& pair) const noexcept;

  Core& core_;
  Rank peer_;
  std::vector<std::unique_ptr<PortPair>>& pairs_;
  Place place_;
  std::array<Message, kWindow> ring_{};
  std::uint64_t next_ = 0;       // sequence of the next message
  std::uint64_t oldest_ = 0;     // all before are acknowledged
  std::uint64_t delivered_ = 0;  // by the peer, as it says
  std::uint64_t unfinished_ = 0;
  std::uint64_t lost_ = 0;  // fragments to send again
  bool worn_out_ = false;
  std::uint64_t to_confirm_ = 0;
  std::size_t pair_turn_ = 0;
  std::size_t channel_turn_ = 0;
};

}  // namespace gdrx::verbs
