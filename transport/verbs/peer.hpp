// SPDX-License-Identifier: Apache-2.0
// All that a Device knows of one other: the port pairs to it, what goes out, what comes in.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gdrx/log_limit.hpp"
#include "transport/verbs/incoming.hpp"
#include "transport/verbs/outgoing.hpp"
#include "transport/verbs/pairing.hpp"

namespace gdrx::verbs {

// Final, and nobody owns a PortPairOwner: no virtual destructor is needed.
class Peer final : public PortPairOwner {  // NOLINT(*-virtual-class-destructor)
 public:
  /// `first_channel` is the id of the first of pairs() * qps QP channels.
  static Result<std::unique_ptr<Peer>> create(Core& core, Rank rank, std::uint64_t nonce,
                                              const Pairing& pairing, std::uint32_t first_channel);

  Rank rank() const noexcept { return rank_; }
  std::uint64_t nonce() const noexcept { return nonce_; }
  std::vector<std::unique_ptr<PortPair>>& pairs() noexcept { return pairs_; }
  const Pairing& pairing() const noexcept { return pairing_; }
  Outgoing& outgoing() noexcept { return outgoing_; }
  /// Of an isolated peer.
  const Error* error() const noexcept { return error_ ? &*error_ : nullptr; }

  /// The address of the peer's port that port pair `number` leads to.
  Result<void> learn(std::uint8_t number, const RailAddress& rail);
  void on_control(const Control& message, Instant now);
  /// A completion of one of the QP channels of port pair `pair`.
  void on_completion(const ibv_wc& done, const QpChannel::Mark& mark, PortPair& pair,
                     QpChannel& channel);
  /// Something may be due: the device's next poll looks at it, and until there is nothing.
  void stir() noexcept {
    if (!std::exchange(stirred_, true)) core_.stirred.push_back(this);
  }
  /// What is due of those that were stirred, who leave when that is nothing any more. `idle`:
  /// nothing completed in this round.
  static void round_of(std::vector<Peer*>& stirred, bool idle) noexcept;
  void tick(Instant now);
  bool busy() const noexcept;
  std::string describe() const;
  std::string state() const;  // of every port pair and queue, for people who look for a hang

  void fragment_acknowledged(const Fragment& fragment) noexcept override;
  void fragment_lost(const Fragment& fragment) noexcept override;
  void peer_delivered(std::uint64_t messages) noexcept override;
  std::uint64_t delivered() const noexcept override { return incoming_.delivered(); }
  void send_control(Control& message, std::uint8_t pair, bool everywhere) noexcept override;
  void pair_failed(std::uint8_t pair, const std::string& why) override;
  void pair_reconciled(std::uint8_t pair, std::uint32_t arrived, std::uint32_t lost) override;
  void pair_refused(std::uint8_t pair, const std::string& why, bool for_good) override;
  void pair_up(std::uint8_t pair) override;
  void give_up(std::string why) override;

 private:
  Peer(Core& core, Rank rank, std::uint64_t nonce, const Pairing& pairing)
      : core_(core),
        rank_(rank),
        nonce_(nonce),
        pairing_(pairing),
        incoming_(core, rank),
        outgoing_(core, rank, pairs_) {}
  Result<void> open(std::uint32_t first_channel);
  bool round(bool idle) noexcept;
  Result<void> reach(PortPair& pair, Instant now);
  Result<void> take_handle(PortPair& pair);
  void follow_own_address(PortPair& pair, Instant now);
  void leave_ports_that_are_down(Instant now);
  void look_for_silence(Instant now);
  void ping(PortPair& pair, ControlKind kind) noexcept;
  void on_receive(const ibv_wc& done, const QpChannel::Mark& mark, PortPair& pair,
                  QpChannel& channel);
  void on_repeated(const Incoming::Came& came, const ibv_wc& done, PortPair& pair,
                   const QpChannel& channel);
  void exchange_acknowledged() noexcept;
  bool owed() const noexcept;
  std::string ends_of(PortPair& pair) const;

  Core& core_;
  Rank rank_;
  std::uint64_t nonce_;
  Pairing pairing_;
  Buffer memory_;
  std::vector<std::unique_ptr<Registration>> buffers_;  // by rail of ours
  std::vector<std::unique_ptr<Registration>> credits_;
  struct Reach {
    bool known = false;  // the peer's address
    bool told = false;   // that it is not reached
    Instant again{};
    Asked<Result<std::unique_ptr<AddressHandle>>> asked;
    std::uint8_t own = 0;  // our port's revision that it is of
  };
  std::vector<Reach> reach_;                             // by port pair
  std::vector<std::unique_ptr<AddressHandle>> handles_;  // by port pair; null: not reached yet
  std::vector<std::unique_ptr<PortPair>> pairs_;
  Incoming incoming_;
  Outgoing outgoing_;
  std::optional<Error> error_;
  bool given_up_ = false;
  bool stirred_ = false;     // it is in the core's list
  LogLimit rail_lines_{12};  // of rails that come and go
  std::optional<Instant> refused_since_;
  struct {
    std::size_t pair = 0;
    std::string why;
  } last_;  // a rail failed
  bool ever_up_ = false;
  bool guarded_ = false;         // a port pair was, in some epoch
  std::uint64_t confirmed_ = 0;  // acknowledged messages that the peer was told of
  Instant heard_{};              // an acknowledgement or a datagram; time without a look adds none
  Instant beat_{};               // the last one; nothing was owed before
  std::vector<int> silent_;      // by port pair: beats without a word while another one was heard
  struct {
    Instant at{};
    Instant ping{};  // the next
  } look_;           // the last one for silence
};

}  // namespace gdrx::verbs
