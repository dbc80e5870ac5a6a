// SPDX-License-Identifier: Apache-2.0
// A pair of ports of two devices, and the QPs between them in one epoch. A state machine: QPs are
// made and told (connecting), used (up), quiesced when anything fails (quiescing), and made anew
// once both sides know what the other has received (waiting).
#pragma once

#include <array>
#include <memory>
#include <string>

#include "gdrx/clock.hpp"
#include "transport/verbs/qp_channel.hpp"

namespace gdrx::verbs {

enum class PairState : std::uint8_t { connecting, up, quiescing, waiting, dead };

/// What a PortPair asks of its Peer.
class PortPairOwner {
 public:
  virtual void fragment_acknowledged(const Fragment& fragment) noexcept = 0;
  virtual void fragment_lost(const Fragment& fragment) noexcept = 0;
  virtual void peer_delivered(std::uint64_t messages) noexcept = 0;
  virtual std::uint64_t delivered() const noexcept = 0;
  /// Sends over this port pair's ports, or over all port pairs' (`everywhere`).
  virtual void send_control(Control& message, std::uint8_t pair, bool everywhere) noexcept = 0;
  virtual void pair_failed(std::uint8_t pair, const std::string& why) = 0;
  /// Both ends know what became of the fragments without an acknowledgement: `lost` are sent again.
  virtual void pair_reconciled(std::uint8_t pair, std::uint32_t arrived, std::uint32_t lost) = 0;
  /// Its QPs could not be made, or not be told of; for good: it is dead, else it tries again.
  virtual void pair_refused(std::uint8_t pair, const std::string& why, bool for_good) = 0;
  virtual void pair_up(std::uint8_t pair) = 0;
  virtual void give_up(std::string why) = 0;  // the peer broke the protocol

 protected:
  ~PortPairOwner() = default;
};

constexpr const char* to_string(PairState state) noexcept {
  constexpr std::array<const char*, 5> kNames{"connecting", "up", "quiescing", "waiting", "dead"};
  return kNames[static_cast<std::size_t>(state)];
}

class PortPair {
 public:
  struct Setup {
    std::uint8_t number = 0;
    Rail* rail = nullptr;
    std::size_t rail_index = 0;  // of ours
    std::size_t peer_rail = 0;   // of the peer's
    std::array<ChannelMemory, kMaxQps> memory;
    std::uint32_t first_channel = 0;  // id
    std::uint64_t credit_address = 0;
    std::uint32_t credit_rkey = 0;
    std::uint32_t psn = 0;
    std::uint8_t qps = 1;
    bool leads = false;  // of two ends one asks for what its NIC can, the other one says what is
  };
  PortPair(PortPairOwner& owner, const Options& options, const Setup& setup)
      : owner_(owner), options_(options), setup_(setup) {}

  PairState state() const noexcept { return state_; }
  std::uint8_t number() const noexcept { return setup_.number; }
  Rail& rail() const noexcept { return *setup_.rail; }
  std::size_t rail_index() const noexcept { return setup_.rail_index; }
  std::size_t peer_rail() const noexcept { return setup_.peer_rail; }
  std::uint32_t epoch() const noexcept { return epoch_; }
  std::span<QpChannel> channels() noexcept { return {channels_.data(), setup_.qps}; }
  std::uint32_t qp_number() const noexcept { return last_qp_; }
  Instant heard() const noexcept { return heard_; }
  bool unacknowledged() const noexcept;
  /// In this epoch what was delivered may come again: a NIC of either end is of that kind.
  bool guarded() const noexcept { return guarded_; }

  /// The way to the peer's port is known.
  void set_peer(const RailAddress& peer) { peer_ = peer; }
  const RailAddress& peer() const noexcept { return peer_; }

  void on_hello(const Control& message, Instant now);
  void on_quiesced(const Control& message, Instant now);
  void on_heard(Instant now) noexcept { heard_ = now; }
  void on_acknowledged(Instant now) noexcept {
    heard_ = now;
    rest_ = {};
  }
  /// Something failed: from here no byte of the old QPs lands, on either side, once both know.
  void fail(const std::string& why, Instant now);
  void tick(Instant now);
  /// The peer is lost: nothing of its QPs lands or is read any more. Nothing follows.
  void shut() noexcept;

 private:
  std::uint32_t psn_seed() const noexcept;
  void open_channels(Instant now);
  bool connect_channels(const Control& hello, Instant now);
  bool waits_for_ece(const Control& hello) const noexcept;
  void say_hello(std::uint8_t flags) noexcept;
  void say_quiesced(std::uint32_t epoch, const std::array<std::uint32_t, kMaxQps>& received,
                    std::uint8_t flags) noexcept;
  void tell_of_refused_datagrams();
  void finish_quiescing(Instant now);
  void reconcile(Instant now);
  void back_off(Instant now) noexcept;
  void restart_timer(Instant now) noexcept;

  PortPairOwner& owner_;
  const Options& options_;
  Setup setup_;
  RailAddress peer_;
  PairState state_ = PairState::connecting;
  std::uint32_t epoch_ = 1;
  std::array<QpChannel, kMaxQps> channels_;
  bool opened_ = false;
  bool own_guard_ = false;  // of our NIC, as this epoch's hellos say
  bool guarded_ = false;
  bool connected_ = false;  // our QPs know the peer's
  bool peer_up_ = false;
  Instant quiesce_until_{};
  std::array<std::uint32_t, kMaxQps> received_{};       // of the epoch that ended last
  std::array<std::uint32_t, kMaxQps> peer_received_{};  // the same, of the peer
  bool peer_quiesced_ = false;
  std::uint32_t quiesced_epoch_ = 0;  // that received_ is of
  std::uint32_t last_qp_ = 0;
  Instant next_{};
  Duration wait_{};
  Duration rest_{};  // before the next epoch: the last ones ended without any acknowledgement
  Instant heard_{};
};

}  // namespace gdrx::verbs
