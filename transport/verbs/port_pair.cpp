// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/port_pair.hpp"

#include <algorithm>
#include <system_error>

namespace gdrx::verbs {
namespace {

using std::chrono::milliseconds;

constexpr Duration kFirstWait = milliseconds(2);
constexpr Duration kLongestWait = milliseconds(500);
// Flushed completions of a QP in error come at once, or never when the NIC is gone; destroying the
// QP ends its access to memory in either case.
constexpr Duration kDrainTime = milliseconds(100);

// Of a QP in one epoch, from what the hello tells: no two alike, and none foretold by another.
std::uint32_t psn_of(std::uint32_t seed, std::size_t qp) noexcept {
  std::uint64_t word = (std::uint64_t{seed} << 8 | qp) + 0x9e3779b97f4a7c15U;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9U;
  word = (word ^ word >> 27) * 0x94d049bb133111ebU;
  return static_cast<std::uint32_t>((word ^ word >> 31) & 0xffffff);
}

}  // namespace

std::uint32_t PortPair::psn_seed() const noexcept {
  return setup_.psn + epoch_ * 0x9e3779b1U + setup_.number * 0x85ebca6bU;
}

bool PortPair::unacknowledged() const noexcept {
  return opened_ && std::any_of(channels_.begin(), channels_.begin() + setup_.qps,
                                [](const QpChannel& channel) { return !channel.idle(); });
}

void PortPair::restart_timer(Instant now) noexcept {
  wait_ = kFirstWait;
  next_ = now;
}

void PortPair::back_off(Instant now) noexcept {
  next_ = now + wait_;
  wait_ = std::min(2 * wait_, kLongestWait);
}

void PortPair::open_channels(Instant now) {
  for (std::size_t i = 0; i < setup_.qps; ++i) {
    const auto id = static_cast<std::uint32_t>(setup_.first_channel + i);
    auto opened = channels_[i].open(rail(), id, setup_.memory[i]);
    if (opened) continue;
    for (std::size_t j = 0; j < i; ++j) channels_[j].close();
    // Out of something: the NIC may have it again later.
    const bool for_good = refused_for_good(opened.error().native);
    if (for_good) state_ = PairState::dead;
    back_off(now);
    return owner_.pair_refused(setup_.number, describe(opened.error()), for_good);
  }
  opened_ = true;
  own_guard_ = guarded_ = rail().repeats();
  connected_ = peer_up_ = false;
  last_qp_ = channels_[0].number();
}

void PortPair::say_hello(std::uint8_t flags) noexcept {
  Control message;
  message.kind = ControlKind::hello;
  message.flags = own_guard_ ? flags | kGuard : flags;
  message.epoch = epoch_;
  message.receives = kReceives;
  message.credit_address = setup_.credit_address;
  message.credit_rkey = setup_.credit_rkey;
  message.psn = psn_seed();
  for (std::size_t i = 0; i < setup_.qps; ++i) message.qp[i] = channels_[i].number();
  if (const auto ece = options_.ece ? channels_[0].ece() : std::nullopt) {
    message.flags |= kEce;
    message.ece_vendor = ece->vendor_id;
    message.ece_options = ece->options;
    message.ece_mask = ece->comp_mask;
  }
  owner_.send_control(message, setup_.number, false);
}

void PortPair::say_quiesced(std::uint32_t epoch, const std::array<std::uint32_t, kMaxQps>& received,
                            std::uint8_t flags) noexcept {
  Control message;
  message.kind = ControlKind::quiesced;
  message.flags = flags;
  message.epoch = epoch;
  message.received = received;
  owner_.send_control(message, setup_.number, true);  // over the rails that live
}

// The leading end offers, the other one connects with what both can and tells it; then the first
// connects with that.
bool PortPair::waits_for_ece(const Control& hello) const noexcept {
  const bool both = options_.ece && (hello.flags & kEce) != 0 && channels_[0].ece().has_value();
  return both && setup_.leads && (hello.flags & kReady) == 0;
}

bool PortPair::connect_channels(const Control& hello, Instant now) {
  if (options_.ece && (hello.flags & kEce) != 0 && channels_[0].ece()) {
    const ibv_ece wanted{hello.ece_vendor, hello.ece_options, hello.ece_mask};
    for (QpChannel& channel : channels()) channel.set_ece(wanted);
  }
  guarded_ = own_guard_ || (hello.flags & kGuard) != 0;
  for (std::size_t i = 0; i < setup_.qps; ++i) {
    QpRoute route;
    route.address = rail().route_to(peer_);
    route.peer_qp = hello.qp[i];
    route.peer_psn = psn_of(hello.psn, i);
    route.psn = psn_of(psn_seed(), i);
    route.mtu = static_cast<ibv_mtu>(std::min(peer_.mtu, rail().address().mtu));
    route.timeout = rail().timeout();
    route.retries = options_.retries;
    const PeerCredit credit{hello.credit_address + i * sizeof(CreditWord), hello.credit_rkey};
    if (auto done = channels_[i].connect(route, hello.receives, credit, guarded_); !done) {
      connected_ = true;  // some QPs may know the peer: it has to be quiesced like any other
      fail(describe(done.error()), now);
      return false;
    }
  }
  connected_ = true;
  return true;
}

void PortPair::on_hello(const Control& message, Instant now) {
  heard_ = now;
  if (state_ == PairState::dead || message.epoch != epoch_ || !opened_) return;
  if (state_ != PairState::connecting && state_ != PairState::up) return;
  if (message.qps != setup_.qps) {
    return owner_.give_up("it uses another number of QPs: set NCCL_IB_QPS_PER_CONNECTION alike");
  }
  owner_.peer_delivered(message.delivered);
  if (!connected_ && waits_for_ece(message)) return say_hello(0);
  if (!connected_ && !connect_channels(message, now)) return;
  if ((message.flags & kReady) != 0 && state_ == PairState::connecting) {
    state_ = PairState::up;
    owner_.pair_up(setup_.number);
  }
  if ((message.flags & kUp) == 0) {
    say_hello(state_ == PairState::up ? kReady | kUp : kReady);
  } else {
    peer_up_ = true;
  }
}

void PortPair::fail(const std::string& why, Instant now) {
  if (state_ != PairState::connecting && state_ != PairState::up) return;
  if (!connected_ && !rail().dead()) return;  // nobody knows these QPs: the hellos go on
  state_ = PairState::quiescing;
  quiesce_until_ = now + kDrainTime;
  quiesced_epoch_ = epoch_;
  peer_quiesced_ = false;
  for (QpChannel& channel : channels()) channel.to_error();
  owner_.pair_failed(setup_.number, why);
}

// All that completed has been polled; what the QPs received is final.
void PortPair::finish_quiescing(Instant now) {
  for (std::size_t i = 0; i < setup_.qps; ++i) {
    received_[i] = opened_ ? channels_[i].received() : 0;
    channels_[i].close();
  }
  opened_ = false;
  rail().count_landed();  // fragments that will be said not to have come
  state_ = PairState::waiting;
  restart_timer(now);
  if (peer_quiesced_) {
    say_quiesced(epoch_, received_, kAnswer);
    reconcile(now);
  }
}

void PortPair::on_quiesced(const Control& message, Instant now) {
  heard_ = now;
  owner_.peer_delivered(message.delivered);
  const bool answer = (message.flags & kAnswer) == 0;
  if (message.epoch == quiesced_epoch_ && epoch_ != quiesced_epoch_) {
    if (answer) say_quiesced(quiesced_epoch_, received_, kAnswer);  // ours was lost
    return;
  }
  if (message.epoch != epoch_) return;
  if (state_ == PairState::dead) {  // in this epoch nothing was received
    if (answer) say_quiesced(epoch_, {}, kAnswer);
    return;
  }
  if (state_ == PairState::connecting || state_ == PairState::up) {
    connected_ = true;  // as the peer says
    fail("its other end gave it up", now);
  }
  peer_received_ = message.received;
  peer_quiesced_ = true;
  if (state_ != PairState::waiting) return;
  if (answer) say_quiesced(epoch_, received_, kAnswer);
  reconcile(now);
}

// Both ends are quiesced and have told what they got: the rest is sent again elsewhere.
void PortPair::reconcile(Instant now) {
  bool fewer = false;
  bool more = false;
  std::uint32_t arrived = 0;
  std::uint32_t lost = 0;
  const auto on_arrived = [&](const Fragment& fragment) {
    ++arrived;
    owner_.fragment_acknowledged(fragment);
  };
  const auto on_lost = [&](const Fragment& fragment) {
    ++lost;
    owner_.fragment_lost(fragment);
  };
  for (std::size_t i = 0; i < setup_.qps; ++i) {
    const auto all = channels_[i].reconcile(peer_received_[i], on_arrived, on_lost);
    fewer = fewer || std::is_lt(all);
    more = more || std::is_gt(all);
  }
  owner_.pair_reconciled(setup_.number, arrived, lost);
  ++epoch_;
  peer_quiesced_ = false;
  state_ = rail().dead() ? PairState::dead : PairState::connecting;
  restart_timer(now);
  next_ = now + rest_;
  rest_ = std::clamp(2 * rest_, kFirstWait, kLongestWait);
  if (fewer) owner_.give_up("it does not have what its NIC acknowledged");
  if (more) owner_.give_up("it got more than was sent: a NIC delivered something twice");
}

void PortPair::shut() noexcept {
  for (QpChannel& channel : channels()) channel.close();
  opened_ = false;
  state_ = PairState::dead;
}

// Nothing comes of an epoch of which the peer does not hear.
void PortPair::tell_of_refused_datagrams() {
  const int error = rail().send_error();
  if (error == 0) return;
  owner_.pair_refused(setup_.number,
                      "ibv_post_send of a datagram: " + std::generic_category().message(error),
                      false);
}

void PortPair::tick(Instant now) {
  switch (state_) {
    case PairState::connecting:
      if (rail().dead()) {
        connected_ = connected_ && opened_;
        if (connected_) return fail("the NIC is dead", now);
        // Whoever knows these QPs has sent them nothing: they were never ready.
        for (QpChannel& channel : channels()) channel.close();
        opened_ = false;
        state_ = PairState::dead;
        return;
      }
      if (now < next_ || !rail().port_up()) return;
      if (!opened_) open_channels(now);
      if (!opened_) return;
      say_hello(connected_ ? kReady : 0);
      back_off(now);
      tell_of_refused_datagrams();
      return;
    case PairState::up:
      if (rail().dead()) fail("the NIC is dead", now);
      return;
    case PairState::quiescing: {
      const auto live = channels();
      const bool drained = std::all_of(live.begin(), live.end(), [](const QpChannel& channel) {
        return !channel.open() || channel.drained();
      });
      // A process that was not run for a while polls what came meanwhile first.
      const bool late = now >= quiesce_until_ && rail().quiet();
      if (drained || rail().broken() || late) finish_quiescing(now);
      return;
    }
    case PairState::waiting:
      if (now < next_) return;
      say_quiesced(epoch_, received_, 0);
      back_off(now);
      tell_of_refused_datagrams();
      return;
    case PairState::dead:
      return;
  }
}

}  // namespace gdrx::verbs
